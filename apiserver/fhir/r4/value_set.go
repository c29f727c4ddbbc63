package r4

import "strings"

// Coding is a code of a code system.
type Coding struct{ System, Code string }

// Expand returns the codes of the value set with a canonical URL, which may have the version 4.0.1.
// It returns false unless R4 has a required binding to the value set and its codes can be
// enumerated.
func Expand(url string) ([]Coding, bool) {
	url = strings.TrimSuffix(url, "|4.0.1")
	for i := range valueSets {
		if set := &valueSets[i]; set.url == url && url != "" {
			return set.codings()
		}
	}
	return nil, false
}

func (v *valueSet) codings() ([]Coding, bool) {
	var all []Coding
	for _, list := range v.systems {
		if len(list.codes) == 0 {
			return nil, false
		}
		for _, code := range list.codes {
			all = append(all, Coding{list.system, code})
		}
	}
	return all, len(all) > 0
}
