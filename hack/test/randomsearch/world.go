// Package randomsearch is a simple search engine for FHIR that tests every record for every query. Its
// tests send random queries to a server and compare the responses with the results of this engine. It
// takes the searchable values of records from searchtruth, not from the server.
package randomsearch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// Record is a live record of a site.
type Record struct {
	Type string
	// ID is in lower case.
	ID string
	// Created and Updated are in microseconds.
	Created, Updated int64

	values map[string][]store.Value
}

func (r *Record) String() string { return r.Type + "/" + r.ID }

// has reports whether the record has a value of the parameter for which the test holds.
func has[V store.Value](r *Record, param string, test func(V) bool) bool {
	for _, value := range r.values[param] {
		if v, ok := value.(V); ok && test(v) {
			return true
		}
	}
	return false
}

// World is what a caller sees of a site.
type World struct {
	Records []*Record

	byName     map[string]*Record
	base       string
	parameters map[string]map[string]searchtruth.Parameter
	// compartments are HL7's compartments, by the type of the record that owns them.
	compartments map[string]searchtruth.Compartment
}

// see returns the world of a caller that may see only records of the types. If hidden is not empty,
// the caller sees no records that a rule about this security label hides.
func (w *World) see(types []string, hidden string) *World {
	seen := &World{base: w.base, parameters: w.parameters, compartments: w.compartments, byName: map[string]*Record{}}
	for _, r := range w.Records {
		if slices.Contains(types, r.Type) && (hidden == "" || !w.hides(r, hidden)) {
			seen.add(r)
		}
	}
	return seen
}

// links are the parameters whose references decide whether a caller sees a record, with the type of
// their targets. A caller sees a Device only with its Patient, and a DeviceMetric only with its
// Devices.
var links = map[string]map[string]string{
	"Device":       {"patient": "Patient"},
	"DeviceMetric": {"source": "Device", "parent": "Device"},
}

// hides reports whether a rule that denies a security label hides a record: the record has the label,
// is linked to a hidden record, or is linked to a record of this site that does not exist or has
// another type.
func (w *World) hides(r *Record, label string) bool {
	if has(r, "_security", func(t store.Token) bool { return t.Code == label }) {
		return true
	}
	for param, target := range links[r.Type] {
		if has(r, param, func(reference store.Reference) bool {
			name, local := w.local(reference)
			to := w.byName[name]
			return local && (to == nil || to.Type != target || w.hides(to, label))
		}) {
			return true
		}
	}
	return false
}

func (w *World) add(r *Record) {
	w.Records = append(w.Records, r)
	w.byName[r.String()] = r
}

// local returns the type and id of the record of this site to which a reference is, whether or not the
// record exists. It reports false for other references.
func (w *World) local(reference store.Reference) (string, bool) {
	if reference.ID == "" || reference.Base != "" && reference.Base != w.base {
		return "", false
	}
	return reference.Type + "/" + reference.ID, true
}

// referredBy lists the records that a record refers to by a parameter.
func (w *World) referredBy(r *Record, param string) []*Record {
	var found []*Record
	for _, value := range r.values[param] {
		if reference, ok := value.(store.Reference); ok {
			if name, ok := w.local(reference); ok && w.byName[name] != nil {
				found = append(found, w.byName[name])
			}
		}
	}
	return found
}

// references returns the names of the reference parameters of a type, sorted.
func (w *World) references(typ string) []string {
	var names []string
	for name, p := range w.parameters[typ] {
		if p.Kind == "reference" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Include is an _include or, if Reverse is set, a _revinclude. Iterate is the modifier :iterate.
type Include struct {
	Reverse, Iterate    bool
	Type, Param, Target string // "" is any
}

// steps returns the records to which an include leads from a record.
func (w *World) steps(from *Record, include Include) []*Record {
	var found []*Record
	for _, source := range w.Records {
		if !include.Reverse && source != from || include.Type != "" && include.Type != source.Type {
			continue
		}
		for _, param := range w.references(source.Type) {
			if include.Param != "" && include.Param != param {
				continue
			}
			for _, target := range w.referredBy(source, param) {
				switch {
				case include.Target != "" && include.Target != target.Type:
				case !include.Reverse:
					found = append(found, target)
				case target == from:
					found = append(found, source)
				}
			}
		}
	}
	return found
}

// Included returns the records that includes add to the matches of a page.
func (w *World) Included(matches []*Record, includes []Include) map[*Record]bool {
	known, included := map[*Record]bool{}, map[*Record]bool{}
	for _, r := range matches {
		known[r] = true
	}
	for at, first := matches, true; len(at) > 0; first = false {
		var added []*Record
		for _, from := range at {
			for _, include := range includes {
				if !first && !include.Iterate {
					continue
				}
				for _, r := range w.steps(from, include) {
					if !known[r] {
						known[r], included[r] = true, true
						added = append(added, r)
					}
				}
			}
		}
		at = added
	}
	return included
}

// SortKey is a part of an order. Name is a parameter, _id or _lastUpdated. An empty name means the
// time of creation.
type SortKey struct {
	Name       string
	Descending bool
}

// Matches returns the records of the types for which all filters hold, in the order of keys. Without
// keys, the newest record comes first.
func (w *World) Matches(types []string, filters []Filter, keys []SortKey) []*Record {
	var found []*Record
	for _, r := range w.Records {
		if slices.Contains(types, r.Type) && !slices.ContainsFunc(filters, func(f Filter) bool { return !f.Holds(w, r) }) {
			found = append(found, r)
		}
	}
	if len(keys) == 0 {
		keys = []SortKey{{Descending: true}}
	}
	slices.SortFunc(found, func(a, b *Record) int { // records with equal keys are sorted by creation
		for _, key := range keys {
			if c := compare(a, b, key); c != 0 {
				return c
			}
		}
		return compare(a, b, SortKey{Descending: keys[len(keys)-1].Descending})
	})
	return found
}

// follow sorts records in want that are equal in all keys and in the time of creation into the order
// that a page has, because the server may choose the order of such records.
func follow(want []*Record, page []string, keys []SortKey) {
	if len(keys) == 0 {
		keys = []SortKey{{}}
	}
	equal := func(a, b *Record) bool {
		return a.Created == b.Created && !slices.ContainsFunc(keys, func(key SortKey) bool { return compare(a, b, key) != 0 })
	}
	for i, name := range page[:min(len(page), len(want))] {
		at := slices.IndexFunc(want[i:], func(r *Record) bool { return r.String() == name })
		if at > 0 && equal(want[i], want[i+at]) {
			want[i], want[i+at] = want[i+at], want[i]
		}
	}
}

// compare compares two records by a part of an order.
func compare(a, b *Record, key SortKey) int {
	sign := 1
	if key.Descending {
		sign = -1
	}
	switch key.Name {
	case "":
		return sign * cmp.Compare(a.Created, b.Created)
	case "_lastUpdated":
		return sign * cmp.Compare(a.Updated, b.Updated)
	case "_id":
		return sign * strings.Compare(a.ID, b.ID)
	}
	first, hasFirst := best(a, key)
	second, hasSecond := best(b, key)
	switch {
	case hasFirst && hasSecond:
		return sign * cmp.Or(cmp.Compare(first.time, second.time), strings.Compare(first.text, second.text))
	case hasFirst:
		return -1 // records without a value come last, in both directions
	case hasSecond:
		return 1
	}
	return 0
}

// place is a value by which records are sorted: a time or a folded text.
type place struct {
	time int64
	text string
}

// best returns the value of a record that comes first in the direction of the order. It reports false
// if the record has no value.
func best(r *Record, key SortKey) (first place, found bool) {
	for _, value := range r.values[key.Name] {
		var at place
		switch v := value.(type) {
		case store.Text:
			at.text = v.Folded
		case store.Period:
			at.time = v.From
		default:
			continue
		}
		c := cmp.Or(cmp.Compare(at.time, first.time), strings.Compare(at.text, first.text))
		if !found || c < 0 && !key.Descending || c > 0 && key.Descending {
			first, found = at, true
		}
	}
	return first, found
}
