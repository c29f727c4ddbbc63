// Package smart authorizes access to FHIR records by SMART on FHIR scopes (SMART App Launch 2.2.0,
// scopes-and-launch-context.html). It does no I/O.
package smart

import (
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// permissions are the letters of a scope, in the order in which it must list them.
const permissions = "cruds"

// levelPatient is the level of scopes on the records of one patient.
const levelPatient = "patient"

// versionOne maps the permissions of SMART v1 to those of v2.
var versionOne = map[string]string{"read": "rs", "write": "cud", "*": permissions}

// plainUnderscores are the search parameters, in addition to _has, whose names begin with an
// underscore and that a scope may have, because they select records. Parameters such as _include
// affect only the response.
var plainUnderscores = []string{"_id", "_lastUpdated", "_tag", "_profile", "_security", "_source"}

// scope is one scope on FHIR records.
type scope struct {
	// level is patient, user or system.
	level string
	// resource is a type, or * for every type.
	resource string
	// permissions are letters of "cruds".
	permissions string
	// search has the parameters that a record must match. It is nil if there are none.
	search url.Values
}

// parse parses a scope. It reports false for a scope that is not on FHIR records, such as openid,
// and for a scope with an unknown part, because ignoring a part could grant more than was meant.
func parse(text string) (scope, bool) {
	rest, query, restricted := strings.Cut(text, "?")
	level, rest, ok := strings.Cut(rest, "/")
	if !ok || level != levelPatient && level != "user" && level != "system" {
		return scope{}, false
	}
	resource, letters, ok := strings.Cut(rest, ".")
	if !ok || !isType(resource) {
		return scope{}, false
	}
	parsed := scope{level: level, resource: resource, permissions: letters}
	if mapped, old := versionOne[letters]; old {
		parsed.permissions = mapped
		return parsed, !restricted // v1 has no search parameters
	}
	if !inOrder(letters) {
		return scope{}, false
	}
	if !restricted {
		return parsed, true
	}
	parsed.search, ok = parseSearch(query)
	return parsed, ok
}

func isType(name string) bool {
	return name == "*" || slices.ContainsFunc(r4.Types, func(t r4.Type) bool { return t.Name == name })
}

// inOrder reports whether letters are one or more of "cruds", each at most once and in that order.
func inOrder(letters string) bool {
	last := -1
	for _, letter := range letters {
		at := strings.IndexRune(permissions, letter)
		if at <= last {
			return false
		}
		last = at
	}
	return last >= 0
}

// parseSearch parses the parameters of a scope. Each must select records and have a value, because
// without a value it would be no restriction.
func parseSearch(query string) (url.Values, bool) {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) == 0 {
		return nil, false
	}
	for name, given := range values {
		bare, _, _ := strings.Cut(name, ":")
		condition := bare != "" && (!strings.HasPrefix(bare, "_") || slices.Contains(plainUnderscores, bare) || bare == "_has")
		if !condition || slices.Contains(given, "") {
			return nil, false
		}
	}
	return values, true
}

// grants reports whether the scope has a permission, a letter of "cruds", on a type.
func (s scope) grants(letter, resource string) bool {
	return strings.Contains(s.permissions, letter) && (s.resource == "*" || s.resource == resource)
}
