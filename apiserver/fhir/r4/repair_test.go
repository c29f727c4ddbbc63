package r4

import "fmt"

// repairs make what was made at random meet the invariants of its type.
var repairs map[typeIndex]func(*generator, *node)

func init() {
	repairs = map[typeIndex]func(*generator, *node){
		typeAge:                       measure("a"),
		typeCount:                     measure("1"),
		typeDistance:                  measure("km"),
		typeDuration:                  measure("min"),
		typeQuantity:                  needs("code", "system", quoted("http://unitsofmeasure.org")),
		typeAttachment:                needs("data", "contentType", quoted("image/png")),
		typeContactPoint:              repairContactPoint,
		typeAddress:                   repairUse,
		typeDataRequirementCodeFilter: onlyPath,
		typeDataRequirementDateFilter: onlyPath,
		typeExpression:                func(_ *generator, n *node) { n.put("expression", quoted("true")) },
		typeExtension:                 repairExtension,
		typeGroup: func(_ *generator, n *node) {
			if n.get("member") != nil || n.get("_member") != nil {
				n.put("actual", scalar("true"))
			}
		},
		typeOrganization:   func(_ *generator, n *node) { n.put("name", quoted("O")) },
		typePatientContact: func(_ *generator, n *node) { n.put("name", dict().put("text", quoted("N"))) },
		typePeriod:         repairPeriod,
		typeRange:          repairRange,
		typeRatio: func(g *generator, n *node) {
			n.put("numerator", g.object(typeQuantity, 4, false)).put("denominator", g.object(typeQuantity, 4, false))
		},
		typeTimingRepeat:      repairRepeat,
		typeTriggerDefinition: repairTrigger,
		typeSignature:         func(*generator, *node) {},
	}
}

// measure makes a quantity of UCUM with a code.
func measure(code string) func(*generator, *node) {
	return func(g *generator, n *node) {
		for _, name := range []string{"value", "system", "code"} {
			n.drop("_" + name)
		}
		n.put("value", scalar(fmt.Sprint(1+g.IntN(99)))).put("system", quoted("http://unitsofmeasure.org")).put("code", quoted(code))
	}
}

// needs returns a repair that adds b to a node with a.
func needs(a, b string, value *node) func(*generator, *node) {
	return func(_ *generator, n *node) {
		if (n.get(a) != nil || n.get("_"+a) != nil) && n.get(b) == nil {
			n.put(b, value)
		}
	}
}

func repairContactPoint(g *generator, n *node) {
	needs("value", "system", quoted("phone"))(g, n)
	repairUse(g, n)
}

// repairUse avoids the use that organizations cannot have.
func repairUse(_ *generator, n *node) {
	if use := n.get("use"); use != nil && use.raw == `"home"` {
		n.put("use", quoted("work"))
	}
}

func onlyPath(_ *generator, n *node) {
	n.drop("searchParam")
	n.drop("_searchParam")
	n.put("path", quoted("p"))
}

func repairExtension(g *generator, n *node) {
	hasValue := false
	for _, e := range types[typeExtension].elements {
		if e.isChoice() && (n.get(e.name) != nil || n.get("_"+e.name) != nil) {
			hasValue = true
		}
	}
	switch {
	case hasValue:
		n.drop("extension")
	case n.get("extension") == nil:
		n.put("valueString", quoted(g.words()))
	}
}

func repairPeriod(g *generator, n *node) {
	n.drop("_start")
	n.drop("_end")
	precision := 1 + g.IntN(3)
	start, end := g.moment(precision), g.moment(precision)
	n.put("start", quoted(min(start, end))).put("end", quoted(max(start, end)))
	if g.chance(30) {
		n.drop(pick(g, "start", "end"))
	}
}

func repairRange(g *generator, n *node) {
	low := g.IntN(50)
	n.put("low", dict().put("value", scalar(fmt.Sprint(low))).put("unit", quoted("kg")))
	n.put("high", dict().put("value", scalar(fmt.Sprintf("%d.0", low+g.IntN(5)))).put("unit", quoted("kg")))
	if g.chance(30) {
		n.drop(pick(g, "low", "high"))
	}
}

func repairRepeat(g *generator, n *node) {
	n.members = nil
	n.put("count", scalar("1")).put("countMax", scalar("2"))
	n.put("duration", scalar("0.5")).put("durationMax", scalar("1")).put("durationUnit", quoted("h"))
	n.put("period", scalar("0")).put("periodMax", scalar("3")).put("periodUnit", quoted("d"))
	if g.chance(50) {
		n.put("when", list(quoted("MORN"), quoted("AC"))).put("offset", scalar("30"))
	} else {
		n.put("timeOfDay", list(quoted("10:00:00")))
	}
}

func repairTrigger(_ *generator, n *node) {
	n.members = nil
	n.put("type", quoted("named-event")).put("name", quoted("n"))
}
