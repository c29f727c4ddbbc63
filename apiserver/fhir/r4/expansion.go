package r4

import "strings"

// Coding is a code of a system.
type Coding struct{ System, Code string }

// Expand lists the codes of a value set. It knows those that R4 requires codes to be
// from, but for the ones that no list can hold, such as all languages.
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
