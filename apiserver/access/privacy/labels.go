// Package privacy compiles the privacy rules of a Site into conditions for storage engines, for one
// caller and one resource type at a time. It does no I/O.
package privacy

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Search parameters whose values are labels (R4 resource.html#search).
const (
	paramSecurity = "_security"
	paramTag      = "_tag"
	paramProfile  = "_profile"
)

// linkParams are, by resource type, the search parameters whose references decide on the visibility
// of a record, with the types to which they refer. A Device is visible only if its Patient is, and
// a DeviceMetric only if its Devices are.
var linkParams = map[string]map[string]string{
	"Device":       {"patient": "Patient"},
	"DeviceMetric": {"source": "Device", "parent": "Device"},
}

// HasLinks reports whether the visibility of records of a type can depend on the records to which
// they refer.
func HasLinks(recordType string) bool { return len(linkParams[recordType]) > 0 }

// LinkParams returns the search parameters, sorted, whose references decide on the visibility of
// records of a type.
func LinkParams(recordType string) []string {
	return slices.Sorted(maps.Keys(linkParams[recordType]))
}

// Labels returns the privacy labels in the index values of a record. Security labels, tags and
// profiles are names, and the references of linkParams are links.
func Labels(recordType string, values []store.IndexValue) store.Labels {
	var labels store.Labels
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(labels.Names, name) {
				labels.Names = append(labels.Names, name)
			}
		}
	}
	links := linkParams[recordType]
	for _, entry := range values {
		switch value := entry.Value.(type) {
		case store.Token:
			if entry.Param == paramSecurity || entry.Param == paramTag {
				add(codeLabel(entry.Param, value.Code), codingLabel(entry.Param, value.System, value.Code))
			}
		case store.Text:
			if entry.Param == paramProfile {
				add(profileLabel(value.Original))
				if canonical, _, versioned := strings.Cut(value.Original, "|"); versioned {
					add(profileLabel(canonical))
				}
			}
		case store.Reference:
			if _, ok := links[entry.Param]; ok {
				labels.Links = append(labels.Links, store.Link{Param: entry.Param, To: value})
			}
		}
	}
	return labels
}

// codeLabel returns the label of a code in any system. Case is ignored as in searches
// (R4 search.html#token).
func codeLabel(param, code string) string { return param + " " + fold.Code(code) }

// codingLabel returns the label of a code in a system, which is empty if the coding has none.
func codingLabel(param, system, code string) string {
	return param + "|" + system + "|" + fold.Code(code)
}

func profileLabel(canonical string) string { return paramProfile + " " + canonical }

// label returns the condition of having a coding.
func (c Coding) label(param string) store.HasLabel {
	if c.System == "" {
		return store.HasLabel(codeLabel(param, c.Code))
	}
	return store.HasLabel(codingLabel(param, c.System, c.Code))
}
