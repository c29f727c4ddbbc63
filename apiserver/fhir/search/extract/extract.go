// Package extract finds the searchable values of a FHIR resource, as engines index
// them. It reads the body's bytes once more than the tables of R4 do, and knows
// neither queries nor engines.
package extract

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Entries is a store.Extract: it returns what the search parameters of the type find
// in the body of a record, which Read has accepted, and mentions of the records of
// types kept that it refers to besides, each value once. _id and _lastUpdated are the
// engine's own to know.
func Entries(recordType string, body []byte) []store.Entry {
	found := index(recordType, body)
	e := extraction{entries: make([]store.Entry, 0, 2*len(found))}
	for _, v := range found {
		p := v.Parameter()
		if p == nil {
			e.mention(v.JSON(body))
			continue
		}
		e.param = params[p]
		e.compares = false
		e.value(v.Type(), v.JSON(body))
		if !e.compares {
			e.entries = append(e.entries, store.Entry{Param: e.param.name})
		}
	}
	e.entries = append(e.entries, e.mentions()...)
	return unique(e.entries)
}

// References are the references among the entries: no other value is read.
func References(recordType string, body []byte) []store.Entry {
	var e extraction
	for _, v := range index(recordType, body) {
		if p := v.Parameter(); p != nil && v.Type() == typeReference {
			e.param = params[p]
			e.reference(v.JSON(body))
		}
	}
	return unique(slices.DeleteFunc(e.entries, func(entry store.Entry) bool {
		_, ok := entry.Value.(store.Reference)
		return !ok
	}))
}

const typeReference = "Reference"

func index(recordType string, body []byte) []r4.IndexValue {
	if _, known := r4.TypeOf(recordType); !known {
		return nil
	}
	return r4.Index(body, recordType)
}

// extraction collects the entries of a record.
type extraction struct {
	entries []store.Entry
	param   *param
	// mentioned are the records that no parameter leads to, as far as is known.
	mentioned []store.Reference
	// compares tells that the value being read has something to compare.
	compares bool
}

// param is what extraction needs of a search parameter, and the names that derived
// entries have.
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

// value adds the entries of one value of a FHIR type.
func (e *extraction) value(typ string, json []byte) {
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
		e.token(store.Token{System: e.param.system, Code: foldedCode(json)})
	case "boolean":
		e.token(truth(json))
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

// add adds an entry of the parameter itself.
func (e *extraction) add(value store.Value) {
	e.compares = true
	e.entries = append(e.entries, store.Entry{Param: e.param.name, Value: value})
}

// derive adds an entry under a derived name.
func (e *extraction) derive(name string, value store.Value) {
	e.entries = append(e.entries, store.Entry{Param: name, Value: value})
}

// few entries are compared with each other faster than they are hashed.
const few = 48

// unique drops what is there before.
func unique(entries []store.Entry) []store.Entry {
	kept := entries[:0]
	if len(entries) <= few {
		for _, entry := range entries {
			if !contains(kept, entry) {
				kept = append(kept, entry)
			}
		}
		return kept
	}
	seen := make(map[store.Entry]bool, len(entries))
	for _, entry := range entries {
		if !seen[entry] {
			seen[entry] = true
			kept = append(kept, entry)
		}
	}
	return kept
}

func contains(entries []store.Entry, entry store.Entry) bool {
	for i := range entries {
		if entries[i].Param == entry.Param && entries[i].Value == entry.Value {
			return true
		}
	}
	return false
}
