package sqlplan

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// maxSignatures is the maximum number of signatures of one condition that a scan tests. A condition
// with more alternatives is tested on the rows alone.
const maxSignatures = 8

// signatures returns signatures of which each record that meets a condition has at least one. ok is
// false if there are none, or more than maxSignatures.
func (c *compiler) signatures(typeName string, condition store.Condition) (all []indexrow.Signature, ok bool) {
	switch condition := condition.(type) {
	case store.TextIs:
		if condition.Match == store.Contains {
			return nil, false
		}
		for _, form := range c.textForms(condition) {
			if form == "" { // any text of the parameter may begin with it
				return nil, false
			}
			for _, key := range c.textKeys(typeName, condition.Param) {
				all = append(all, indexrow.TextSignature(key, form))
			}
		}
	case store.TokenIs:
		if condition.Code == nil || !c.index.Extractor.IsFacet(condition.Param) {
			return nil, false
		}
		all = append(all, c.index.Hash.FacetSignature(c.index.Hash.Param(typeName, condition.Param), *condition.Code))
	case store.Any:
		for _, part := range condition {
			more, ok := c.signatures(typeName, part)
			if !ok {
				return nil, false
			}
			all = append(all, more...)
		}
	}
	return all, len(all) > 0 && len(all) <= maxSignatures
}

// signatureTest returns the test whether the index of signatures shows that a row of res, named x, may
// meet all predicates: by its signature, and by the column present. It returns "" if there are only facets
// that are no common codes. The test is false for tombstones: they have an empty signature, and are
// excluded where only present is tested.
func (p *planner) signatureTest() string {
	var ofAll indexrow.Signature
	var alternatives [][]indexrow.Signature
	var inPresent []string
	suffices := false
	for _, part := range p.predicates {
		before := p.checkpoint()
		if test, ok := p.testInPresent("x", p.typeName, part.condition); ok {
			inPresent, suffices = append(inPresent, test), true
			continue
		}
		p.restore(before)
		all, ok := p.signatures(p.typeName, part.condition)
		if !ok {
			continue
		}
		if _, isFacet := part.condition.(store.TokenIs); !isFacet {
			suffices = true
		}
		if len(all) == 1 {
			ofAll = ofAll.With(all[0])
		} else {
			alternatives = append(alternatives, all)
		}
	}
	if !suffices {
		return ""
	}
	var tests []string
	if ofAll != (indexrow.Signature{}) {
		tests = append(tests, p.hasSignature("x", ofAll))
	}
	for _, all := range alternatives {
		parts := make([]string, len(all))
		for i, s := range all {
			parts[i] = p.hasSignature("x", s)
		}
		tests = append(tests, "("+strings.Join(parts, " OR ")+")")
	}
	if len(inPresent) > 0 {
		tests = append(append(tests, "NOT x.deleted"), inPresent...)
	}
	return strings.Join(tests, " AND ")
}

// hasSignature returns the test whether a row of res has all bits of a signature.
func (c *compiler) hasSignature(row string, s indexrow.Signature) string {
	var parts []string
	for i, column := range []string{"sig", "sig2", "sig3"} {
		if s[i] != 0 {
			bits := c.Arg(s[i])
			parts = append(parts, "("+row+"."+column+" & "+bits+") = "+bits)
		}
	}
	return strings.Join(parts, " AND ")
}

// scanSignatures returns the branch that reads the records in the order of creation whose signature
// passes a test (signatureTest). It tests signatures in the index, and the rest on the row. If the column
// present decides all, and only rids are wanted, it reads no rows.
func (p *planner) scanSignatures(test string, guards []string) (string, error) {
	where := append([]string{"x.site = $1", "x.typ = " + p.Arg(p.typeName)}, guards...)
	where = append(append(where, p.afterRid("x.rid")...), test)
	if p.onlyRid && p.isInPresent() {
		return "(SELECT x.rid FROM res x" + whereAll(where) + " ORDER BY x.rid " + p.direction() + " LIMIT " + p.limit + ")", nil
	}
	driver := "(SELECT x.rid FROM res x" + whereAll(where) + " ORDER BY x.rid " + p.direction() + ") d" + p.rowOf()
	ofRid, ofRow, err := p.tests("r.rid", -1, nil)
	if err != nil {
		return "", err
	}
	return "(SELECT " + p.columns("d.rid") + " FROM " + driver + whereAll(append(ofRow, ofRid...)) + " ORDER BY d.rid " + p.direction() + " LIMIT " + p.limit + ")", nil
}
