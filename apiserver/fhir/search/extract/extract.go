// Package extract returns the index values of FHIR resources, which engines index. It depends on
// neither queries nor engines.
package extract

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Values returns the index values of a body that r4.Read has accepted: those of the search parameters
// of the type, and a store.Mention of each referenced record that no value of type store.Reference
// has. A selected element with nothing to compare has an IndexValue without a Value. Each value is
// returned once. The parameters _id and _lastUpdated have no index values.
func Values(recordType string, body []byte) []store.IndexValue {
	return ValuesOf(body, selectedValues(recordType, body))
}

// ValuesOf is like Values, but for a text that r4.Read has parsed with Options.Index. found is the Index of
// the Resource that it returned.
func ValuesOf(text []byte, found []r4.SelectedValue) []store.IndexValue {
	e := extractor{values: make([]store.IndexValue, 0, 2*len(found))}
	for _, v := range found {
		p := v.Parameter()
		if p == nil {
			e.mention(v.JSON(text))
			continue
		}
		e.param = params[p]
		e.hasValue = false
		e.value(v.Type(), v.JSON(text))
		if !e.hasValue {
			e.values = append(e.values, store.IndexValue{Param: e.param.name})
		}
	}
	e.values = append(e.values, e.mentions()...)
	return unique(e.values)
}

// References returns the index values of type store.Reference that Values returns. It does not
// compute the other index values.
func References(recordType string, body []byte) []store.IndexValue {
	var e extractor
	for _, v := range selectedValues(recordType, body) {
		if p := v.Parameter(); p != nil && v.Type() == typeReference {
			e.param = params[p]
			e.reference(v.JSON(body))
		}
	}
	return unique(slices.DeleteFunc(e.values, func(entry store.IndexValue) bool {
		_, ok := entry.Value.(store.Reference)
		return !ok
	}))
}

// Parts returns the parameters of a type that select a part of what param selects: family and given for
// name, email and phone for telecom. For phonetic, whose index values are codes, it returns none.
func Parts(recordType, param string) []string { return parts[typeParam{recordType, param}] }

type typeParam struct{ recordType, param string }

// Ordinal returns the number of a search parameter in the alphabetical list of the parameters of a type,
// from 0. It returns -1 if the type does not have the parameter.
func Ordinal(recordType, param string) int {
	if n, known := ordinals[typeParam{recordType, param}]; known {
		return n
	}
	return -1
}

var ordinals = func() map[typeParam]int {
	all := map[typeParam]int{}
	for _, typ := range r4.Types {
		var names []string
		for _, p := range r4.SearchParameters(typ.Name) {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		for n, name := range slices.Compact(names) {
			all[typeParam{typ.Name, name}] = n
		}
	}
	return all
}()

var parts = func() map[typeParam][]string {
	found := map[typeParam][]string{}
	for _, typ := range r4.Types {
		all := r4.SearchParameters(typ.Name)
		for _, whole := range all {
			if params[whole].phonetic {
				continue // its values are codes
			}
			for _, p := range all {
				if p.IsPartOf(whole) {
					of := typeParam{typ.Name, whole.Name}
					found[of] = append(found[of], p.Name)
				}
			}
		}
	}
	return found
}()

const typeReference = "Reference"

func selectedValues(recordType string, body []byte) []r4.SelectedValue {
	if _, known := r4.TypeOf(recordType); !known {
		return nil
	}
	return r4.Index(body, recordType)
}

// extractor collects the index values of a record.
type extractor struct {
	values []store.IndexValue
	param  *param
	// mentioned are the records that mention has recorded.
	mentioned []store.Reference
	// pairs is the number of values of type store.Pair.
	pairs int
	// hasValue is true if the value that is being read has added an index value by method add.
	hasValue bool
}

// param is a search parameter with the names under which values for its modifiers are indexed.
type param struct {
	name, text, ofType, identifier string
	system                         string
	phonetic                       bool
}

var params = func() map[*r4.SearchParameter]*param {
	all := map[*r4.SearchParameter]*param{}
	for _, typ := range r4.Types {
		for _, p := range r4.SearchParameters(typ.Name) {
			all[p] = &param{
				name: p.Name, text: p.Name + ":text", ofType: p.Name + ":of-type", identifier: p.Name + ":identifier",
				system: p.System(), phonetic: p.Name == "phonetic",
			}
		}
	}
	return all
}()

// value adds the index values of one value of a FHIR type.
func (e *extractor) value(typ string, json []byte) {
	switch typ {
	case "CodeableConcept":
		e.concept(json)
	case "Coding":
		e.coding(json)
	case "Identifier":
		e.identifier(json)
	case "ContactPoint":
		e.contactPoint(json)
	case "code":
		e.token(store.Token{System: e.param.system, Code: foldCode(json)})
	case "boolean":
		e.token(booleanToken(json))
	case "string":
		e.text(json)
	case "HumanName", "Address":
		e.parts(json)
	case "uri", "url", "canonical":
		e.uri(json)
	case typeReference:
		e.reference(json)
	case "date", "dateTime", "instant":
		e.moment(json)
	case "Period":
		e.period(json)
	case "Group.characteristic":
		e.characteristic(json)
	case "Location.position":
		e.position(json)
	}
}

// add adds an index value of the parameter itself.
func (e *extractor) add(value store.Value) {
	e.hasValue = true
	e.values = append(e.values, store.IndexValue{Param: e.param.name, Value: value})
}

// derive adds an index value under another name, such as that of a modifier.
func (e *extractor) derive(name string, value store.Value) {
	e.values = append(e.values, store.IndexValue{Param: name, Value: value})
}

// linearLimit is the number of values up to which comparing each with each is faster than hashing.
const linearLimit = 48

// unique removes duplicates in place.
func unique(values []store.IndexValue) []store.IndexValue {
	kept := values[:0]
	if len(values) <= linearLimit {
		for _, entry := range values {
			if !contains(kept, entry) {
				kept = append(kept, entry)
			}
		}
		return kept
	}
	seen := make(map[store.IndexValue]bool, len(values))
	for _, entry := range values {
		if !seen[entry] {
			seen[entry] = true
			kept = append(kept, entry)
		}
	}
	return kept
}

func contains(values []store.IndexValue, entry store.IndexValue) bool {
	for i := range values {
		if values[i].Param == entry.Param && values[i].Value == entry.Value {
			return true
		}
	}
	return false
}
