package search

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// noteRelated notes what the answer tells of besides the matches: the patients that
// patient= names, and the places that matches are near to.
func (p *parser) noteRelated(c store.Condition) {
	switch c := c.(type) {
	case store.All:
		for _, each := range c {
			p.noteRelated(each)
		}
	case store.Any:
		for _, each := range c {
			p.noteRelated(each)
		}
	case store.Near:
		p.query.Near = append(p.query.Near, c)
	case store.RefersToID:
		if c.Param == paramPatient {
			p.query.Patients = append(p.query.Patients, c.ID)
		}
	case store.RefersTo:
		if c.Param == paramPatient && c.To.ID != "" && (c.To.Base == "" || slices.Contains(p.Bases, c.To.Base)) {
			p.query.Patients = append(p.query.Patients, c.To.ID)
		}
	}
}
