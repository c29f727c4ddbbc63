package smart

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]*scope{
		"system/Patient.rs":             {level: "system", resource: "Patient", permissions: "rs"},
		"user/*.cruds":                  {level: "user", resource: "*", permissions: "cruds"},
		"patient/Device.d":              {level: "patient", resource: "Device", permissions: "d"},
		"system/Patient.read":           {level: "system", resource: "Patient", permissions: "rs"},
		"system/*.write":                {level: "system", resource: "*", permissions: "cud"},
		"user/Patient.*":                {level: "user", resource: "Patient", permissions: "cruds"},
		"system/Patient.rs?gender=male": {level: "system", resource: "Patient", permissions: "rs", search: url.Values{"gender": {"male"}}},
		"user/Group.s?_tag=http%3A%2F%2Fa%7Cb&type=animal": {
			level: "user", resource: "Group", permissions: "s", search: url.Values{"_tag": {"http://a|b"}, "type": {"animal"}},
		},
		"user/Patient.s?_has:Person:patient:name=a": {
			level: "user", resource: "Patient", permissions: "s", search: url.Values{"_has:Person:patient:name": {"a"}},
		},
		"openid": nil, "launch/patient": nil, "fhirUser": nil, "offline_access": nil, "": nil, "/.": nil,
		"system/Patient.sr": nil, "system/Patient.rr": nil, "system/Patient.": nil, "system/Patient": nil,
		"system/Patient.rx": nil, "system/Patient.RS": nil, "System/Patient.rs": nil, "admin/Patient.rs": nil,
		"system/Observation.rs": nil, "system/patient.rs": nil, "system/Pat*.rs": nil, "system/Patient.rs.rs": nil,
		"system/Patient.rs?": nil, "system/Patient.rs?gender": nil, "system/Patient.rs?gender=": nil, "system/Patient.rs?=male": nil,
		"system/Patient.rs?a=%zz": nil, "system/Patient.rs?a;b=c": nil, "system/Patient.read?gender=male": nil,
		"system/Patient.rs?_include=*": nil, "system/Patient.rs?_count=1&gender=male": nil, "system/Patient.rs?_include:iterate=*": nil,
	} {
		t.Run(text, func(t *testing.T) {
			got, ok := parse(text)
			if ok != (want != nil) {
				t.Fatalf("parse: %v, %t", got, ok)
			}
			if want == nil {
				return
			}
			if diff := cmp.Diff(*want, got, cmp.AllowUnexported(scope{})); diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestrictions(t *testing.T) {
	for name, test := range map[string]struct {
		scopes, patient, verb, resource string
		want                            []Restriction
		unrestricted                    bool
	}{
		"no scopes":             {verb: "get", resource: "Patient"},
		"the type":              {scopes: "system/Patient.r", verb: "get", resource: "Patient", unrestricted: true},
		"another type":          {scopes: "system/Device.r", verb: "get", resource: "Patient"},
		"every type":            {scopes: "user/*.c", verb: "create", resource: "Group", unrestricted: true},
		"reading alone":         {scopes: "user/*.rs", verb: "update", resource: "Group"},
		"searching alone":       {scopes: "user/*.s", verb: "get", resource: "Group"},
		"a list needs s":        {scopes: "user/*.r", verb: "list", resource: "Group"},
		"a patch is an update":  {scopes: "user/*.u", verb: "patch", resource: "Group", unrestricted: true},
		"a deletion":            {scopes: "user/*.cru", verb: "delete", resource: "Group"},
		"a verb without scopes": {scopes: "user/*.cruds", verb: "privileged", resource: "Group"},
		"of two searches": {
			scopes: "user/Patient.rs?gender=male user/Patient.r?active=true", verb: "get", resource: "Patient",
			want: []Restriction{{Search: url.Values{"gender": {"male"}}}, {Search: url.Values{"active": {"true"}}}},
		},
		"a wider one counts":    {scopes: "user/Patient.rs?gender=male system/*.r", verb: "get", resource: "Patient", unrestricted: true},
		"a patient's":           {scopes: "patient/*.rs", patient: "rex", verb: "list", resource: "Device", want: []Restriction{{Patient: "rex"}}},
		"a patient's, searched": {scopes: "patient/Device.s?type=x", patient: "rex", verb: "list", resource: "Device", want: []Restriction{{Patient: "rex", Search: url.Values{"type": {"x"}}}}},
		"of no patient":         {scopes: "patient/*.rs", verb: "list", resource: "Device"},
		"of no possible one":    {scopes: "patient/*.rs", patient: "a/b", verb: "list", resource: "Device"},
	} {
		t.Run(name, func(t *testing.T) {
			caller := access.Caller{SMART: true, Scopes: strings.Fields(test.scopes), Patient: test.patient}
			got, unrestricted := Restrictions(caller, test.verb, test.resource)
			if diff := cmp.Diff(test.want, got); diff != "" || unrestricted != test.unrestricted {
				t.Errorf("unrestricted %t, want %t; restrictions (-want +got):\n%s", unrestricted, test.unrestricted, diff)
			}
			caller.SMART = false
			if _, unrestricted := Restrictions(caller, test.verb, test.resource); !unrestricted {
				t.Error("scopes restrict a caller whose rights do not come from them")
			}
		})
	}
}

// errNext is the answer of the authorizer behind.
var errNext = errors.New("the next authorizer decides")

type next struct{}

func (next) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return errNext
}

func TestAuthorize(t *testing.T) {
	smart := access.Caller{Name: "site:clinic:alice", SMART: true, Scopes: []string{"system/Patient.rs", "patient/Device.cruds"}}
	other := smart
	other.SMART = false
	for name, test := range map[string]struct {
		caller  access.Caller
		action  access.Action
		allowed bool
		next    bool
	}{
		"a scope":              {caller: smart, action: access.Action{Verb: "get", Group: r4.Group, Resource: "patients", Name: "rex"}, allowed: true},
		"no scope":             {caller: smart, action: access.Action{Verb: "delete", Group: r4.Group, Resource: "patients", Name: "rex"}},
		"of no patient":        {caller: smart, action: access.Action{Verb: "get", Group: r4.Group, Resource: "devices"}},
		"another issuer":       {caller: other, action: access.Action{Verb: "get", Group: r4.Group, Resource: "patients"}, next: true},
		"another group":        {caller: smart, action: access.Action{Verb: "get", Group: "ahds.paddock.health", Resource: "patients"}, next: true},
		"a verb of privacy":    {caller: smart, action: access.Action{Verb: "privileged", Group: r4.Group, Resource: "patients"}, next: true},
		"breaking the glass":   {caller: smart, action: access.Action{Verb: "breakglass", Group: r4.Group, Resource: "patients"}, next: true},
		"the audit":            {caller: smart, action: access.Action{Verb: "list", Group: r4.Group, Resource: "auditevents"}, next: true},
		"the Site":             {caller: smart, action: access.Action{Verb: "get", Group: "paddock.health", Resource: "sites"}, next: true},
		"a resource in pieces": {caller: smart, action: access.Action{Verb: "get", Group: r4.Group, Resource: "patients/status"}, next: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := Authorizer{Next: next{}}.Authorize(t.Context(), test.caller, access.Tenant{Namespace: "clinic"}, test.action)
			var forbidden *access.ForbiddenError
			switch {
			case test.next && !errors.Is(err, errNext), test.allowed && err != nil:
				t.Errorf("Authorize: %v", err)
			case !test.next && !test.allowed && (!errors.As(err, &forbidden) || forbidden.Action != test.action):
				t.Errorf("Authorize: %v, want a ForbiddenError that names the action", err)
			}
		})
	}
}

// FuzzScope reads hostile scopes. One that is accepted says exactly what it grants, so it can
// be written again.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{"system/Patient.rs", "patient/*.cruds?gender=male", "user/Device.read", "user/Group.s?_tag=a%7Cb&_id=c", "launch", "user/*.*?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parse(text)
		if !ok {
			return
		}
		written := got.level + "/" + got.resource + "." + got.permissions
		if got.search != nil {
			written += "?" + got.search.Encode()
		}
		again, ok := parse(written)
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(scope{})); !ok || diff != "" {
			t.Errorf("%q is read as %q, which is read otherwise:\n%s", text, written, diff)
		}
		if restrictions, unrestricted := Restrictions(access.Caller{SMART: true, Scopes: []string{text}}, "get", "Patient"); unrestricted && strings.Contains(text, "?") || got.level == levelPatient && len(restrictions) > 0 {
			t.Errorf("%q grants more than it says", text)
		}
	})
}

// TestRestricted grants restricted scopes only where something enforces the restriction.
func TestRestricted(t *testing.T) {
	action := access.Action{Verb: "list", Group: r4.Group, Resource: "patients"}
	for _, scope := range []string{"patient/Patient.rs", "user/Patient.rs?gender=male"} {
		caller := access.Caller{SMART: true, Scopes: []string{scope}, Patient: "rex"}
		for _, enforced := range []bool{false, true} {
			err := Authorizer{Next: next{}, Restricted: enforced}.Authorize(t.Context(), caller, access.Tenant{}, action)
			if (err == nil) != enforced {
				t.Errorf("%s, enforced %t: %v", scope, enforced, err)
			}
		}
	}
}

// TestEveryResource grants each type by its name, and no other.
func TestEveryResource(t *testing.T) {
	for _, granted := range r4.Types {
		caller := access.Caller{SMART: true, Scopes: []string{"system/" + granted.Name + ".cruds"}}
		for _, asked := range r4.Types {
			for verb := range letters {
				action := access.Action{Verb: verb, Group: r4.Group, Resource: asked.Resource}
				err := Authorizer{Next: next{}}.Authorize(t.Context(), caller, access.Tenant{}, action)
				if (err == nil) != (asked == granted) {
					t.Errorf("%s with a scope on %s: %v", action, granted.Name, err)
				}
			}
		}
	}
}
