package r4

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

const ucum = "http://unitsofmeasure.org"

// quantity are the invariants of all types of quantities. These types have the same elements.
var quantity = []invariant{{
	"qty-3", "a quantity with a code must have a system",
	with(bitQuantityCode, bitQuantitySystem),
}}

// hasUCUMUnit is the common part of age-1, cnt-3 and dis-1.
func hasUCUMUnit(o object) bool {
	return (o.has(bitQuantityCode) || !o.has(bitQuantityValue)) &&
		(!o.has(bitQuantitySystem) || o.text(bitQuantitySystem) == ucum)
}

func isNotNegative(bit uint64) func(object) bool {
	return func(o object) bool { return !o.hasValue(bit) || parseDecimal(o.raw(bit)).sign() >= 0 }
}

// startsBeforeEnd is per-1. It passes if the precision does not suffice to decide.
func startsBeforeEnd(o object) bool {
	if !o.hasValue(bitPeriodStart) || !o.hasValue(bitPeriodEnd) {
		return true
	}
	start, ok := parseMoment(o.r.textOf(o.f, bitPeriodStart))
	if !ok {
		return true // reported before
	}
	end, ok := parseMoment(o.r.textOf(o.f, bitPeriodEnd))
	return !ok || !start.surelyAfter(end)
}

// isOrdered is rng-2. Quantities of different units are not compared.
func isOrdered(o object) bool {
	if !o.has(bitRangeLow | bitRangeHigh) {
		return true
	}
	low, high := membersOf(o.raw(bitRangeLow)), membersOf(o.raw(bitRangeHigh))
	if low["system"] != high["system"] || low["code"] != high["code"] || low["code"] == "" && low["unit"] != high["unit"] {
		return true
	}
	if !isNumber(low["value"]) || !isNumber(high["value"]) {
		return true
	}
	return parseDecimal([]byte(low["value"])).compare(parseDecimal([]byte(high["value"]))) <= 0
}

func isNumber(raw string) bool { return raw != "" && (raw[0] == '-' || isDigit(raw[0])) }

// membersOf returns the members of a valid object as JSON.
func membersOf(object []byte) map[string]string {
	found := map[string]string{}
	for m := range jsonwalk.Members(object) {
		found[m.Name] = string(m.Value)
	}
	return found
}

// isOffsetFromEvent is tim-9.
func isOffsetFromEvent(o object) bool {
	if !o.has(bitTimingRepeatOffset) {
		return true
	}
	if !o.has(bitTimingRepeatWhen) {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(o.raw(bitTimingRepeatWhen)))
	for token, err := d.ReadToken(); err == nil; token, err = d.ReadToken() {
		if token.Kind() == jsontext.KindString && slices.Contains([]string{"C", "CM", "CD", "CV"}, token.String()) {
			return false
		}
	}
	return true
}

// isCompleteTrigger is trd-3.
func isCompleteTrigger(o object) bool {
	switch kind := o.text(bitTriggerDefinitionType); {
	case kind == "named-event":
		return o.has(bitTriggerDefinitionName)
	case kind == "periodic":
		return o.has(bitTriggerDefinitionTiming)
	case strings.HasPrefix(kind, "data-"):
		return o.has(bitTriggerDefinitionData)
	}
	return true
}
