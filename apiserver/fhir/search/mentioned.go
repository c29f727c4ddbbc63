package search

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// collectMentioned adds to the query what the response needs in addition to the matches: the ids in
// values of the parameter patient, and the places from which distances are reported.
func (p *parser) collectMentioned(c store.Condition) {
	switch c := c.(type) {
	case store.All:
		for _, each := range c {
			p.collectMentioned(each)
		}
	case store.Any:
		for _, each := range c {
			p.collectMentioned(each)
		}
	case store.Near:
		p.query.Near = append(p.query.Near, c)
	case store.RefersToID:
		if c.Param == paramPatient {
			p.query.Patients = append(p.query.Patients, c.ID)
		}
	case store.RefersTo:
		if c.Param == paramPatient && c.To.Type == "Patient" && c.To.ID != "" && (c.To.Base == "" || slices.Contains(p.Bases, c.To.Base)) {
			p.query.Patients = append(p.query.Patients, c.To.ID)
		}
	}
}
