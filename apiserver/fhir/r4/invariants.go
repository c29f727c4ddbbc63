package r4

// invariant is an invariant that R4 defines for the objects of a type. key is HL7's key, such as
// per-1, and sentence the message if matches returns false.
type invariant struct {
	key      string
	sentence string
	matches  func(o object) bool
}

// object is an object that has been read. The functions of invariants get it.
type object struct {
	r *reader
	f *frame
}

// has reports whether the object has all of the elements, with a value or extensions.
func (o object) has(bits uint64) bool { return (o.f.seen|o.f.extended)&bits == bits }

// hasAny reports whether the object has at least one of the elements, with a value or extensions.
func (o object) hasAny(bits uint64) bool { return (o.f.seen|o.f.extended)&bits != 0 }

// hasValue reports whether the object has the element with a value, not only with extensions.
func (o object) hasValue(bit uint64) bool { return o.f.seen&bit != 0 }

// text returns the text of a string element.
func (o object) text(bit uint64) string { return string(o.r.textOf(o.f, bit)) }

// raw returns the JSON of an element.
func (o object) raw(bit uint64) []byte { return o.r.rawOf(o.f, bit) }

// isIn reports whether the object is a value of element name of type t.
func (o object) isIn(t typeIndex, name string) bool {
	if o.r.depth < 2 {
		return false
	}
	parent := &o.r.frames[o.r.depth-2]
	return parent.typ == t && parent.at != nil && parent.at.name == name
}

// isInContained reports whether the object is the value of an element of a contained resource, such
// as its meta.
func (o object) isInContained() bool { return o.r.depth > 1 && o.r.frames[o.r.depth-2].contained }

// with returns a function that reports whether an object with elements a also has elements b.
func with(a, b uint64) func(object) bool {
	return func(o object) bool { return !o.has(a) || o.has(b) }
}

// checkInvariants checks the invariants of an object that has been read, the target of a Reference,
// and whether a CodeableConcept meets its binding.
func (r *reader) checkInvariants(f *frame) bool {
	o := object{r, f}
	for i := range invariants[f.typ] {
		rule := &invariants[f.typ][i]
		if !rule.matches(o) && !r.report(IssueInvariant, rule.key, rule.sentence) {
			return false
		}
	}
	switch f.typ {
	case typeReference:
		return r.checkReference(f)
	case typeCoding:
		r.recordCoding(f)
	case typeCodeableConcept:
		return r.checkConcept(f)
	}
	return true
}

// rawOf returns the JSON of an element of an object that has been read, and nil if it has no value.
func (r *reader) rawOf(f *frame, bit uint64) []byte {
	for _, v := range r.values[f.values:] {
		if f.element(v).bit() == bit && !v.isExtension {
			return r.body[v.from:v.to]
		}
	}
	return nil
}

// textOf returns the text of a string element of an object that has been read. The text is empty if
// the value is not a string. It is valid until the next call of unquote.
func (r *reader) textOf(f *frame, bit uint64) []byte {
	raw := r.rawOf(f, bit)
	if len(raw) == 0 || raw[0] != '"' {
		return nil
	}
	return r.unquote(raw)
}

// invariants are the invariants with severity error of the supported resource types and their
// datatypes. The reader itself checks ele-1, dom-2, dom-3, ref-1, txt-1 and txt-2.
var invariants = [numTypes][]invariant{
	typeAge: append(quantity, invariant{
		"age-1", "an age with a value must have a code, its value must be above 0, and its system, if present, must be UCUM (http://unitsofmeasure.org)",
		func(o object) bool {
			return hasUCUMUnit(o) && (!o.hasValue(bitAgeValue) || parseDecimal(o.raw(bitAgeValue)).sign() > 0)
		},
	}),
	typeAttachment: {{
		"att-1", "an attachment with data must have a contentType",
		with(bitAttachmentData, bitAttachmentContentType),
	}},
	typeContactPoint: {
		{"cpt-2", "a contact point with a value must have a system", with(bitContactPointValue, bitContactPointSystem)},
		{"org-3", "a telecom of an organization cannot be of use home", func(o object) bool {
			return !o.isIn(typeOrganization, "telecom") || o.text(bitContactPointUse) != "home"
		}},
	},
	typeAddress: {{"org-2", "an address of an organization cannot be of use home", func(o object) bool {
		return !o.isIn(typeOrganization, "address") || o.text(bitAddressUse) != "home"
	}}},
	typeCount: append(quantity, invariant{
		"cnt-3", "the code of a count must be 1 and is required with a value, the value must be a whole number, and the system, if present, must be UCUM (http://unitsofmeasure.org)",
		func(o object) bool {
			return hasUCUMUnit(o) && (!o.hasValue(bitCountCode) || o.text(bitCountCode) == "1") &&
				(!o.hasValue(bitCountValue) || parseDecimal(o.raw(bitCountValue)).isWhole())
		},
	}),
	typeDataRequirementCodeFilter: {{
		"drq-1", "a code filter must have either a path or a searchParam, not both",
		func(o object) bool {
			return o.has(bitDataRequirementCodeFilterPath) != o.has(bitDataRequirementCodeFilterSearchParam)
		},
	}},
	typeDataRequirementDateFilter: {{
		"drq-2", "a date filter must have either a path or a searchParam, not both",
		func(o object) bool {
			return o.has(bitDataRequirementDateFilterPath) != o.has(bitDataRequirementDateFilterSearchParam)
		},
	}},
	typeDistance: append(quantity, invariant{
		"dis-1", "a distance with a value must have a code, and its system, if present, must be UCUM (http://unitsofmeasure.org)", hasUCUMUnit,
	}),
	typeDuration: append(quantity, invariant{
		"drt-1", "a duration with a code must have the system UCUM (http://unitsofmeasure.org) and a value",
		func(o object) bool {
			return !o.has(bitDurationCode) || o.text(bitDurationSystem) == ucum && o.has(bitDurationValue)
		},
	}),
	typeExpression: {{
		"exp-1", "an expression must have an expression or a reference",
		func(o object) bool { return o.hasAny(bitExpressionExpression | bitExpressionReference) },
	}},
	typeExtension: {{
		"ext-1", "an extension must have either a value or extensions, not both",
		func(o object) bool {
			return o.f.flawed || o.has(bitExtensionExtension) != o.has(bitExtensionValue)
		},
	}},
	typeGroup: {{
		"grp-1", "a group can have members only if its element actual is true",
		func(o object) bool { return !o.has(bitGroupMember) || string(o.raw(bitGroupActual)) == "true" },
	}},
	typeMeta: {
		{"dom-4", "a contained resource must have neither a versionId nor a lastUpdated", func(o object) bool {
			return !o.isInContained() || !o.hasAny(bitMetaVersionId|bitMetaLastUpdated)
		}},
		{"dom-5", "a contained resource must have no security label", func(o object) bool {
			return !o.isInContained() || !o.has(bitMetaSecurity)
		}},
	},
	typeOrganization: {{
		"org-1", "an organization must have a name or an identifier",
		func(o object) bool { return o.hasAny(bitOrganizationName | bitOrganizationIdentifier) },
	}},
	typePatientContact: {{
		"pat-1", "a contact must have a name, a telecom, an address or an organization",
		func(o object) bool {
			return o.hasAny(bitPatientContactName | bitPatientContactTelecom | bitPatientContactAddress | bitPatientContactOrganization)
		},
	}},
	typePeriod: {{"per-1", "the start of a period must not be after its end", startsBeforeEnd}},
	typeQuantity: append(quantity, invariant{
		"sqty-1", "a quantity cannot have a comparator here",
		func(o object) bool {
			at := o.r.frames[o.r.depth-2].at
			return !o.has(bitQuantityComparator) || at == nil || at.is&simple == 0
		},
	}),
	typeRange: {{"rng-2", "the low of a range must not be above its high", isOrdered}},
	typeRatio: {{
		"rat-1", "a ratio must have a numerator and a denominator, or neither and extensions instead",
		func(o object) bool {
			return o.has(bitRatioNumerator) == o.has(bitRatioDenominator) && o.hasAny(bitRatioNumerator|bitRatioExtension)
		},
	}},
	typeTimingRepeat: {
		{"tim-1", "a timing with a duration must have a durationUnit", with(bitTimingRepeatDuration, bitTimingRepeatDurationUnit)},
		{"tim-2", "a timing with a period must have a periodUnit", with(bitTimingRepeatPeriod, bitTimingRepeatPeriodUnit)},
		{"tim-4", "the duration of a timing must not be negative", isNotNegative(bitTimingRepeatDuration)},
		{"tim-5", "the period of a timing must not be negative", isNotNegative(bitTimingRepeatPeriod)},
		{"tim-6", "a timing with a periodMax must have a period", with(bitTimingRepeatPeriodMax, bitTimingRepeatPeriod)},
		{"tim-7", "a timing with a durationMax must have a duration", with(bitTimingRepeatDurationMax, bitTimingRepeatDuration)},
		{"tim-8", "a timing with a countMax must have a count", with(bitTimingRepeatCountMax, bitTimingRepeatCount)},
		{"tim-9", "a timing with an offset must have a when, which must not be C, CM, CD or CV", isOffsetFromEvent},
		{"tim-10", "a timing must not have both a timeOfDay and a when", func(o object) bool {
			return !o.has(bitTimingRepeatTimeOfDay | bitTimingRepeatWhen)
		}},
	},
	typeTriggerDefinition: {
		{"trd-1", "a trigger must not have both a timing and data", func(o object) bool {
			return !o.has(bitTriggerDefinitionData | bitTriggerDefinitionTiming)
		}},
		{"trd-2", "a trigger with a condition must have data", with(bitTriggerDefinitionCondition, bitTriggerDefinitionData)},
		{"trd-3", "a trigger must have a name if its type is named-event, a timing if its type is periodic, and data if its type starts with data-", isCompleteTrigger},
	},
}
