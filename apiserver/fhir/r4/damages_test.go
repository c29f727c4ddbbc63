package r4

import (
	"slices"
	"strings"
)

// damage is a way to break a value. It returns how to undo it, or nil where the
// definitions do not forbid what it would make.
type damage struct {
	name string
	do   func(p place) (undo func())
}

func undoes(p place, v *node) func() { return p.replace(v) }

// rewrite lets a function change the members of the object that has the value.
func (p place) rewrite(change func(n *node)) func() {
	before := slices.Clone(p.owner.members)
	change(p.owner)
	return func() { p.owner.members = before }
}

func (p place) isPrimitive() bool { return p.element.typ.isPrimitive() && !p.isExtension }
func (p place) isWhole() bool     { return p.array == nil }

// isText reports whether the value is a string of a primitive type.
func (p place) isText() bool {
	return p.isPrimitive() && p.value().isScalar() && strings.HasPrefix(p.value().raw, `"`)
}

var damages = []damage{
	{"drop a required element", func(p place) func() {
		extension := p.owner.find("_" + p.name)
		if !p.isWhole() || types[p.typ].required&p.bit() == 0 || p.isExtension || extension >= 0 {
			return nil
		}
		return p.rewrite(func(n *node) { n.members = slices.Delete(slices.Clone(n.members), p.member, p.member+1) })
	}},
	{"an object for a primitive", func(p place) func() {
		if !p.isPrimitive() || !p.value().isScalar() {
			return nil
		}
		return undoes(p, dict().put("id", quoted("x")))
	}},
	{"a string for an object", func(p place) func() {
		if p.value().kind != '{' {
			return nil
		}
		return undoes(p, quoted("x"))
	}},
	{"a string for a number or boolean, and the reverse", func(p place) func() {
		switch {
		case !p.isPrimitive() || !p.value().isScalar() || p.value().raw == "null":
			return nil
		case p.isText():
			return undoes(p, scalar("7"))
		}
		return undoes(p, quoted(p.value().raw))
	}},
	{"one value for an array", func(p place) func() {
		if !p.isWhole() || p.value().kind != '[' {
			return nil
		}
		return undoes(p, p.value().items[0])
	}},
	{"an array for one value", func(p place) func() {
		if !p.isWhole() || p.value().kind == '[' {
			return nil
		}
		return undoes(p, list(p.value()))
	}},
	{"null for a value", func(p place) func() {
		inArray := !p.isWhole() && p.element.typ.isPrimitive()
		if inArray || p.value().raw == "null" {
			return nil
		}
		return undoes(p, scalar("null"))
	}},
	{"a misspelt name", func(p place) func() {
		if !p.isWhole() {
			return nil
		}
		return p.rewrite(func(n *node) {
			n.members = slices.Clone(n.members)
			n.members[p.member].name = quote(p.name + "x")
		})
	}},
	{"a doubled name", func(p place) func() {
		if !p.isWhole() {
			return nil
		}
		return p.rewrite(func(n *node) { n.members = append(slices.Clone(n.members), n.members[p.member]) })
	}},
	{"an unknown member", func(p place) func() {
		if p.value().kind != '{' {
			return nil
		}
		v := p.value()
		before := v.members
		v.members = append(slices.Clone(v.members), branch{`"bogus"`, quoted("x")})
		return func() { v.members = before }
	}},
	{"a code of no value set", func(p place) func() {
		if !p.isText() || p.codes == 0 {
			return nil
		}
		return undoes(p, quoted("no such code"))
	}},
	{"a code in capitals", func(p place) func() {
		if !p.isText() || p.codes == 0 || p.codes == codesMimetypes || p.codes == codesAllLanguages {
			return nil
		}
		upper := strings.ToUpper(p.value().text())
		if valueSets[p.codes].has([]byte(upper)) {
			return nil
		}
		return undoes(p, quoted(upper))
	}},
	{"a day that no calendar has", func(p place) func() {
		switch p.element.typ {
		case typeDate, typeDateTime:
			return ifText(p, "2023-02-29")
		case typeInstant:
			return ifText(p, "2023-02-29T00:00:00Z")
		case typeTime:
			return ifText(p, "24:00:00")
		}
		return nil
	}},
	{"a time without a zone", func(p place) func() {
		if p.element.typ != typeDateTime && p.element.typ != typeInstant {
			return nil
		}
		return ifText(p, "2023-02-01T10:00:00")
	}},
	{"an empty string", func(p place) func() { return ifText(p, "") }},
	{"a control character", func(p place) func() {
		if !p.isText() {
			return nil
		}
		return ifText(p, p.value().text()+"\x01")
	}},
	{"white space in what has none", func(p place) func() {
		switch p.element.typ {
		case typeURI, typeURL, typeCanonical, typeID, typeOID, typeUUID, typeDate, typeDateTime, typeInstant, typeTime:
			return ifText(p, p.value().text()+" ")
		case typeCode:
			return ifText(p, " "+p.value().text())
		}
		return nil
	}},
	{"a fraction where an integer must be", func(p place) func() {
		switch p.element.typ {
		case typeInteger, typePositiveInt, typeUnsignedInt:
			if p.isPrimitive() && p.value().isScalar() && p.value().raw != "null" {
				return undoes(p, scalar("1.0"))
			}
		}
		return nil
	}},
	{"a number out of range", func(p place) func() {
		out := map[typeIndex]string{typeInteger: "2147483648", typePositiveInt: "0", typeUnsignedInt: "-1"}[p.element.typ]
		if out == "" || !p.isPrimitive() || !p.value().isScalar() {
			return nil
		}
		return undoes(p, scalar(out))
	}},
	{"broken base64", func(p place) func() {
		if p.element.typ != typeBase64Binary {
			return nil
		}
		return ifText(p, "abc")
	}},
	{"an empty object", func(p place) func() {
		if p.value().kind != '{' || p.element.typ == typeResource {
			return nil
		}
		return undoes(p, dict())
	}},
	{"an object with nothing but an id", func(p place) func() {
		if p.value().kind != '{' || p.element.typ == typeResource || p.isExtension {
			return nil
		}
		return undoes(p, dict().put("id", quoted("x")))
	}},
	{"an empty array", func(p place) func() {
		if p.value().kind != '[' {
			return nil
		}
		return undoes(p, list())
	}},
	{"two choices", func(p place) func() {
		if !p.isWhole() || !p.isChoice() {
			return nil
		}
		other, value := "String", quoted("x")
		for i := range types[p.typ].elements {
			if e := &types[p.typ].elements[i]; e.ord == p.ord && e != p.element && e.typ == typeBoolean {
				other, value = "Boolean", scalar("true")
			}
		}
		if e := lookup(p.typ, []byte(p.base()+other)); e == nil || e == p.element {
			return nil
		}
		return p.rewrite(func(n *node) {
			n.members = append(slices.Clone(n.members), branch{quote(p.base() + other), value})
		})
	}},
	{"an array and its primitive extensions out of step", func(p place) func() {
		if !p.isWhole() || !p.isPrimitive() || !p.isMany() || p.owner.find("_"+p.name) >= 0 {
			return nil
		}
		items := []*node{dict().put("extension", list(anExtension()))}
		for range p.value().items {
			items = append(items, scalar("null"))
		}
		return p.rewrite(func(n *node) {
			n.members = append(slices.Clone(n.members), branch{quote("_" + p.name), list(items...)})
		})
	}},
	{"null without extensions in an array", func(p place) func() {
		if p.isWhole() || !p.isPrimitive() || p.owner.find("_"+p.name) >= 0 {
			return nil
		}
		return undoes(p, scalar("null"))
	}},
	{"an empty primitive extension", func(p place) func() {
		if !p.isWhole() || !p.isPrimitive() || p.isMany() || p.is&plain != 0 || p.owner.find("_"+p.name) >= 0 {
			return nil
		}
		return p.rewrite(func(n *node) {
			n.members = append(slices.Clone(n.members), branch{quote("_" + p.name), dict()})
		})
	}},
	{"an extension without a url", func(p place) func() { return onExtension(p, func(n *node) { n.drop("url") }) }},
	{"an extension without a value", func(p place) func() {
		return onExtension(p, func(n *node) {
			n.members = slices.DeleteFunc(n.members, func(m branch) bool { return m.name != `"url"` && m.name != `"id"` })
		})
	}},
	{"an extension with a value and extensions", func(p place) func() {
		return onExtension(p, func(n *node) {
			if n.get("extension") == nil {
				n.put("extension", list(anExtension()))
			} else {
				n.put("valueCode", quoted("c"))
			}
		})
	}},
	{"a reference to the wrong type", func(p place) func() {
		if p.targets == 0 || p.value().kind != '{' || p.element.typ != typeReference || p.isExtension {
			return nil
		}
		wrong := "Slot"
		if isTarget(p.targets, typeSlot) {
			wrong = "Binary"
		}
		return undoes(p, dict().put("reference", quoted(wrong+"/1")))
	}},
	{"a reference to an unknown type", func(p place) func() { return onReference(p, "Animal/1") }},
	{"a reference of no form", func(p place) func() { return onReference(p, "12345") }},
	{"a reference to nothing contained", func(p place) func() { return onReference(p, "#nothing") }},
	{"a script in a narrative", func(p place) func() {
		if p.element.typ != typeXhtml || !p.isText() {
			return nil
		}
		return undoes(p, quoted(strings.Replace(p.value().text(), "</div>", "<script>x</script></div>", 1)))
	}},
	{"an event handler in a narrative", func(p place) func() {
		if p.element.typ != typeXhtml || !p.isText() {
			return nil
		}
		return undoes(p, quoted(strings.Replace(p.value().text(), "<div", "<div onclick=\"x\"", 1)))
	}},
	{"a contained resource that nothing refers to", func(p place) func() {
		if !p.isWhole() || p.name != "contained" || p.inContained {
			return nil
		}
		v := p.value()
		before := v.items
		v.items = append(slices.Clone(before), dict().put("resourceType", quoted("Basic")).put("id", quoted("lonely")).put("code", dict().put("text", quoted("c"))))
		return func() { v.items = before }
	}},
	{"a contained resource in another", func(p place) func() {
		return onContained(p, func(n *node) {
			n.put("contained", list(dict().put("resourceType", quoted("Person")).put("id", quoted("inner")).put("link",
				list(dict().put("target", dict().put("reference", quoted("#inner")))))))
		})
	}},
	{"a version of a contained resource", func(p place) func() {
		return onContained(p, func(n *node) { n.put("meta", dict().put("versionId", quoted("1"))) })
	}},
	{"a contained resource of no type", func(p place) func() {
		return onContained(p, func(n *node) { n.drop("resourceType") })
	}},
	{"a period that ends before it starts", func(p place) func() {
		if p.value().kind != '{' || p.element.typ != typePeriod || p.isExtension {
			return nil
		}
		return undoes(p, dict().put("start", quoted("2020-02")).put("end", quoted("2020-01-31")))
	}},
	{"a contact point without a system", func(p place) func() {
		if p.value().kind != '{' || p.element.typ != typeContactPoint || p.isExtension || p.value().get("value") == nil || p.value().get("system") == nil {
			return nil
		}
		v := p.value()
		before := v.members
		v.members = slices.Clone(before)
		v.drop("system")
		v.drop("_system")
		return func() { v.members = before }
	}},
	{"an unusable id", func(p place) func() {
		if p.name != "id" || p.element.typ != typeID {
			return nil
		}
		return ifText(p, "a_b")
	}},
}

func anExtension() *node { return dict().put("url", quoted("u")).put("valueCode", quoted("c")) }

func ifText(p place, text string) func() {
	if !p.isText() {
		return nil
	}
	return p.replace(quoted(text))
}

func onExtension(p place, change func(n *node)) func() {
	if p.value().kind != '{' || p.element.typ != typeExtension || p.isExtension {
		return nil
	}
	return onObject(p.value(), change)
}

func onContained(p place, change func(n *node)) func() {
	if p.value().kind != '{' || p.name != "contained" || p.inContained {
		return nil
	}
	return onObject(p.value(), change)
}

func onObject(v *node, change func(n *node)) func() {
	before := v.members
	v.members = slices.Clone(before)
	change(v)
	return func() { v.members = before }
}

func onReference(p place, reference string) func() {
	if p.value().kind != '{' || p.element.typ != typeReference || p.isExtension {
		return nil
	}
	return p.replace(dict().put("reference", quoted(reference)))
}
