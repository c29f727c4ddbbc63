// Package errorcode has the codes of the errors of all APIs: what each means for people, why it
// occurs and what to do. From this one table come the sentences in error responses, the pages of
// codes that servers show, and docs/guides/errors.md. The package depends on nothing.
package errorcode

import (
	"cmp"
	"regexp"
	"slices"
)

// Entry explains an error code to people.
type Entry struct {
	Code string
	// Text is a sentence that names the error. It is OperationOutcome.issue.details.text in the FHIR API,
	// and title in the problem documents of all other APIs.
	Text string
	// Cause says why the error occurs. Remedy says what the client can do.
	Cause, Remedy string
}

// invariantForm is the form of HL7's keys of invariants, which are the codes of resources that break
// them.
var invariantForm = regexp.MustCompile(`^[a-z]{3}-[0-9]{1,2}$`)

// Lookup returns the entry of a code, and false if there is none. Each code in the form of an
// invariant's key has an entry, also if R4 has no such invariant.
func Lookup(code string) (Entry, bool) {
	at, found := slices.BinarySearchFunc(entries, code, func(e Entry, code string) int { return cmp.Compare(e.Code, code) })
	switch {
	case found:
		return entries[at], true
	case invariantForm.MatchString(code):
		return Entry{
			Code: code, Text: "The resource breaks the FHIR invariant " + code + ".",
			Cause:  "FHIR R4 has rules about several elements together, which it calls invariants and names by keys such as " + code + ". The definition of the resource type or datatype has the rule.",
			Remedy: "Change the element that `expression` names. `diagnostics` says what the rule requires.",
		}, true
	default:
		return Entry{}, false
	}
}

// All returns the entries of all codes but the keys of FHIR invariants, sorted by code. Lookup has an
// entry for each invariant.
func All() []Entry { return slices.Clone(entries) }

// Text returns Entry.Text of a code, or the code itself if it has no entry.
func Text(code string) string {
	entry, ok := Lookup(code)
	if !ok {
		return code
	}
	return entry.Text
}

// Pages is the address of the page that lists all codes, without a trailing slash, such as
// https://host/errors. The page of a code is below it. The zero value is the path /errors.
type Pages string

// Address returns the address of the page that lists all codes.
func (p Pages) Address() string { return cmp.Or(string(p), "/errors") }

// Of returns the address of the page of a code.
func (p Pages) Of(code string) string { return p.Address() + "/" + code }
