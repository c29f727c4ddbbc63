package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The tests of this file are named after the rules of search. Each parses the parameters of a type.

// reading is a query of a type, and either the condition that it is parsed to or a part of the
// error message.
type reading struct {
	typeName, query string
	want            store.Condition
	err             string
}

func read(t *testing.T, readings []reading) {
	t.Helper()
	for _, r := range readings {
		if r.err == "" {
			if diff := cmp.Diff(r.want, conditionOf(t, r.typeName, r.query)); diff != "" {
				t.Errorf("%s?%s: %s", r.typeName, r.query, diff)
			}
			continue
		}
		_, err := Parse(values(t, r.query), Options{Type: r.typeName, Now: now, Lenient: true})
		if err == nil || !strings.Contains(err.Error(), r.err) {
			t.Errorf("%s?%s: got %v, want an error with %q", r.typeName, r.query, err, r.err)
		}
	}
}

func is(text string) *string { return &text }

func code(param, code string) store.TokenIs { return store.TokenIs{Param: param, Code: &code} }

func token(param, system, code string) store.TokenIs {
	return store.TokenIs{Param: param, System: &system, Code: &code}
}

func text(param string, match store.TextMatch, text string) store.TextIs {
	return store.TextIs{Param: param, Match: match, Text: text}
}

func not(c store.Condition) store.Not { return store.Not{Condition: c} }

func to(param, base, typeName, id string) store.RefersTo {
	return store.RefersTo{Param: param, To: store.Reference{Base: base, Type: typeName, ID: id}}
}

func TestRule01String(t *testing.T) {
	read(t, []reading{
		{typeName: "Patient", query: "name=Jos%C3%A9", want: text("name", store.StartsWith, "jose")},
		{typeName: "Patient", query: "family:exact=Jos%C3%A9", want: text("family", store.Exactly, "José")},
		{typeName: "Patient", query: "address:contains=M%C3%BCnchen++West", want: text("address", store.Contains, "munchen west")},
		{typeName: "Location", query: "name=a,B", want: store.Any{text("name", store.StartsWith, "a"), text("name", store.StartsWith, "b")}},
		{typeName: "Device", query: "device-name=x|y", want: text("device-name", store.StartsWith, "x|y")},
		{typeName: "Patient", query: "name=%20", err: "has only white space or accents"},
		{typeName: "Patient", query: "name:contains=%CC%81", err: "has only white space or accents"},
		{typeName: "Patient", query: "name:above=x", err: "supported modifiers: contains, exact, missing"},
	})
}

func TestRule02Token(t *testing.T) {
	const gender = "http://hl7.org/fhir/administrative-gender"
	read(t, []reading{
		{typeName: "Patient", query: "identifier=A1", want: code("identifier", "a1")},
		{typeName: "Patient", query: "identifier=urn:X|A1", want: token("identifier", "urn:X", "a1")},
		{typeName: "Patient", query: "identifier=|A1", want: token("identifier", "", "a1")},
		{typeName: "Patient", query: "identifier=urn:x|", want: store.TokenIs{Param: "identifier", System: is("urn:x")}},
		{typeName: "Patient", query: "gender=MALE", want: code("gender", "male")},
		{typeName: "Patient", query: "gender=" + gender + "|male", want: token("gender", gender, "male")},
		{typeName: "Patient", query: "gender:not=male,female", want: not(store.Any{code("gender", "male"), code("gender", "female")})},
		{typeName: "Patient", query: "active=true", want: code("active", "true")},
		{typeName: "Patient", query: "active=http://hl7.org/fhir/special-values|false", want: token("active", "http://hl7.org/fhir/special-values", "false")},
		{typeName: "Patient", query: "telecom=phone|555", want: token("telecom", "phone", "555")},
		{typeName: "Patient", query: "email=A@B.example", want: code("email", "a@b.example")},
		{typeName: "Patient", query: "language:text=Engl", want: text("language:text", store.StartsWith, "engl")},
		{typeName: "Patient", query: "identifier:of-type=http://T|MR|A1", want: token("identifier:of-type", "http://T", "mr|a1")},
		{typeName: "Patient", query: "gender:in=http://hl7.org/fhir/ValueSet/administrative-gender", want: store.Any{
			token("gender", gender, "female"), token("gender", gender, "male"), token("gender", gender, "other"), token("gender", gender, "unknown"),
		}},
		{typeName: "Patient", query: "gender:not-in=http://hl7.org/fhir/ValueSet/administrative-gender|4.0.1", want: not(store.Any{
			token("gender", gender, "female"), token("gender", gender, "male"), token("gender", gender, "other"), token("gender", gender, "unknown"),
		})},
		{typeName: "Patient", query: "gender:in=http://example.org/mine", err: "http://example.org/mine"},
		{typeName: "Patient", query: "gender:in=http://hl7.org/fhir/ValueSet/mimetypes", err: "is not supported; give one that R4 binds"},
		{typeName: "Patient", query: "active=maybe", err: "neither true nor false"},
		{typeName: "Patient", query: "gender:text=x", err: "supported modifiers: in, missing, not, not-in"},
		{typeName: "Patient", query: "gender:below=x", err: `the modifier "below" is not supported for gender`},
		{typeName: "Patient", query: "language:of-type=a|b|c", err: "supported modifiers: in, missing, not, not-in, text"},
		{typeName: "Patient", query: "identifier:of-type=a|b", err: "write system|code|value"},
		{typeName: "Patient", query: "identifier:of-type=a||c", err: "write system|code|value"},
		{typeName: "Patient", query: "identifier=a|b|c", err: "more than one |"},
		{typeName: "Patient", query: "identifier=x,|", err: `value 2 of 2: "|" is not a token`},
	})
}

func TestRule03Deceased(t *testing.T) {
	read(t, []reading{
		{typeName: "Patient", query: "deceased=false", want: code("deceased", "false")},
		{typeName: "Patient", query: "deceased:not=true", want: not(code("deceased", "true"))},
		{typeName: "Patient", query: "deceased=2020", err: "neither true nor false"},
	})
}

func TestRule04Reference(t *testing.T) {
	practitioners := []string{"Organization", "Practitioner", "PractitionerRole"}
	read(t, []reading{
		{typeName: "Patient", query: "general-practitioner=A1", want: store.RefersToID{Param: "general-practitioner", Types: practitioners, ID: "a1"}},
		{typeName: "Patient", query: "general-practitioner=Practitioner/A1", want: to("general-practitioner", "", "Practitioner", "a1")},
		{typeName: "Patient", query: "general-practitioner=Practitioner/1/_history/7", want: to("general-practitioner", "", "Practitioner", "1")},
		{typeName: "Patient", query: "general-practitioner=https://other.example/r4/Practitioner/1", want: to("general-practitioner", "https://other.example/r4", "Practitioner", "1")},
		{typeName: "Patient", query: "general-practitioner=https://h.example/fhir/Practitioner/1", want: to("general-practitioner", "https://h.example/fhir", "Practitioner", "1")},
		{typeName: "Patient", query: "general-practitioner=https://h.example/fhir/practitioner-role/1", want: to("general-practitioner", "https://h.example/fhir", "PractitionerRole", "1")},
		{typeName: "Patient", query: "general-practitioner=practitioner-role/1", want: to("general-practitioner", "", "PractitionerRole", "1")},
		{typeName: "Patient", query: "general-practitioner=https://other.example/practitioner-role/1", want: to("general-practitioner", "https://other.example", "PractitionerRole", "1")},
		{typeName: "Patient", query: "general-practitioner=urn:uuid:X", want: to("general-practitioner", "urn:uuid:X", "", "")},
		{typeName: "Patient", query: "general-practitioner:Practitioner=1", want: store.RefersToID{Param: "general-practitioner", Types: []string{"Practitioner"}, ID: "1"}},
		{typeName: "Patient", query: "general-practitioner:Practitioner=Practitioner/1", want: to("general-practitioner", "", "Practitioner", "1")},
		{typeName: "Patient", query: "general-practitioner:practitioner-role=1", want: store.RefersToID{Param: "general-practitioner", Types: []string{"PractitionerRole"}, ID: "1"}},
		{typeName: "Patient", query: "general-practitioner:practitioner-role=practitioner-role/1", want: to("general-practitioner", "", "PractitionerRole", "1")},
		{typeName: "Patient", query: "organization:identifier=urn:x|A", want: token("organization:identifier", "urn:x", "a")},
		{typeName: "Group", query: "member=Medication/1", want: to("member", "", "Medication", "1")},
		{typeName: "Person", query: "patient=1", want: store.RefersToID{Param: "patient", Types: []string{"Patient"}, ID: "1"}},
		{typeName: "Location", query: "patient=Patient/1", want: to("patient", "", "Patient", "1")},
		{typeName: "Patient", query: "general-practitioner:Patient=1", err: "supported modifiers: Organization, Practitioner, PractitionerRole, identifier, missing"},
		{typeName: "Patient", query: "general-practitioner:patient=1", err: `the modifier "patient" is not supported for general-practitioner, a reference parameter; supported modifiers: Organization, Practitioner, PractitionerRole, identifier, missing`},
		{typeName: "Patient", query: "general-practitioner:Practitioner=Organization/1", err: "is not a reference to the type Practitioner"},
		{typeName: "DeviceMetric", query: "parent=DeviceDefinition/1", want: to("parent", "", "DeviceDefinition", "1")},
		{typeName: "Patient", query: "organization=Nothing/1", err: "is not a reference"},
		{typeName: "Patient", query: "organization=%231", err: "is not a reference"},
		{typeName: "Patient", query: "organization:not=1", err: "supported modifiers: Organization, identifier, missing"},
	})
}

func TestRule06URI(t *testing.T) {
	exactly := func(uri string) store.TextIs { return text("url", store.Exactly, uri) }
	read(t, []reading{
		{typeName: "Device", query: "url=http://A/b", want: exactly("http://A/b")},
		{typeName: "Device", query: "url=http://a/b|1", want: exactly("http://a/b|1")},
		{typeName: "Device", query: "url:below=http://a/b", want: store.Any{exactly("http://a/b"), text("url", store.StartsExactly, "http://a/b/")}},
		{typeName: "Device", query: "url:below=http://a/b/", want: store.Any{exactly("http://a/b/"), text("url", store.StartsExactly, "http://a/b/")}},
		{typeName: "Device", query: "url:above=http://a/b/c", want: store.Any{exactly("http://a/b/c"), exactly("http://a/b"), exactly("http://a")}},
		{typeName: "Device", query: "url:above=urn:oid:1.2.3", want: store.Any{exactly("urn:oid:1.2.3")}},
		{typeName: "Device", query: "url:exact=x", err: "supported modifiers: above, below, missing"},
	})
}

// TestRule06Canonical parses canonical URLs as docs/decisions/0013-canonical-search.md describes.
func TestRule06Canonical(t *testing.T) {
	exactly := func(uri string) store.TextIs { return text("_profile", store.Exactly, uri) }
	starts := func(uri string) store.TextIs { return text("_profile", store.StartsExactly, uri) }
	read(t, []reading{
		{typeName: "Patient", query: "_profile=http://A/b", want: store.Any{exactly("http://A/b"), starts("http://A/b|")}},
		{typeName: "Patient", query: "_profile=http://a/b|1.2.3", want: exactly("http://a/b|1.2.3")},
		{typeName: "Patient", query: "_profile=http://a|1,http://b", want: store.Any{exactly("http://a|1"), store.Any{exactly("http://b"), starts("http://b|")}}},
		{typeName: "Patient", query: "_profile:below=http://a/b", want: store.Any{exactly("http://a/b"), starts("http://a/b|"), starts("http://a/b/")}},
		{typeName: "Patient", query: "_profile:below=http://a/b/", want: store.Any{exactly("http://a/b/"), starts("http://a/b/|"), starts("http://a/b/")}},
		{typeName: "Patient", query: "_profile:below=http://a/b|1.2", want: store.Any{exactly("http://a/b|1.2"), starts("http://a/b|1.2.")}},
		{typeName: "Patient", query: "_profile:above=http://a/b", want: store.Any{exactly("http://a/b"), starts("http://a/b|"), exactly("http://a"), starts("http://a|")}},
		{typeName: "Patient", query: "_profile:above=http://a/b|1.2.3", want: store.Any{exactly("http://a/b|1.2.3"), exactly("http://a/b|1.2"), exactly("http://a/b|1")}},
		{typeName: "Patient", query: "_profile:above=urn:oid:1.2.3", want: store.Any{exactly("urn:oid:1.2.3"), starts("urn:oid:1.2.3|")}},
		{typeName: "Patient", query: `_profile=http://a\|b|1\,2`, want: exactly("http://a|b|1,2")},
		{typeName: "Patient", query: "_profile=http://a|1|2", err: "has more than one |"},
		{typeName: "Patient", query: "_profile=http://a|", err: "is not a canonical URL; write url or url|version"},
		{typeName: "Patient", query: "_profile=|1", err: "is not a canonical URL"},
		{typeName: "Patient", query: "_profile:above=http://a|" + strings.Repeat(".1", 1010), err: "more than 1000 values"},
		{typeName: "Patient", query: "_profile:exact=x", err: "supported modifiers: above, below, missing"},
	})
}

// TestCanonicalParameters lists the parameters whose values are canonical URLs.
func TestCanonicalParameters(t *testing.T) {
	for typeName, parameters := range definitions {
		for name, d := range parameters {
			if got, want := d.hasAny("canonical"), name == "_profile"; got != want {
				t.Errorf("%s of %s takes canonical URLs: %v", name, typeName, got)
			}
		}
	}
}

func TestRule07Composite(t *testing.T) {
	pair := func(first, second store.TokenIs) store.PairIs {
		return store.PairIs{Param: "characteristic-value", First: first, Second: second}
	}
	read(t, []reading{
		{typeName: "Group", query: "characteristic-value=Gender$MIXED", want: pair(code("characteristic", "gender"), code("value", "mixed"))},
		{typeName: "Group", query: "characteristic-value=s|a$t|", want: pair(token("characteristic", "s", "a"), store.TokenIs{Param: "value", System: is("t")})},
		{typeName: "Group", query: `characteristic-value=a\$b$c,d$e`, want: store.Any{
			pair(code("characteristic", "a$b"), code("value", "c")), pair(code("characteristic", "d"), code("value", "e")),
		}},
		{typeName: "Group", query: "characteristic-value=a", err: "does not have the form characteristic$value"},
		{typeName: "Group", query: "characteristic-value=a$b$c", err: "does not have the form characteristic$value"},
		{typeName: "Group", query: "characteristic-value=a$", err: `value: "" is not a token`},
		{typeName: "Group", query: "characteristic-value:missing=true", err: "supported modifiers: none"},
	})
}

func TestRule08Near(t *testing.T) {
	near := func(meters float64) store.Near {
		return store.Near{Param: "near", Center: store.Point{Latitude: -83.694810, Longitude: 42.256500}, Meters: meters}
	}
	read(t, []reading{
		{typeName: "Location", query: "near=-83.694810|42.256500|11.20|km", want: near(11200)},
		{typeName: "Location", query: "near=-83.694810|42.256500|11.2", want: near(11200)},
		{typeName: "Location", query: "near=-83.694810|42.256500", want: near(5000)},
		{typeName: "Location", query: "near=-83.694810|42.256500||m", want: near(5)},
		{typeName: "Location", query: "near=-83.694810|42.256500|1|[mi_i]", want: near(1609.344)},
		{typeName: "Location", query: "near=1", err: "write latitude|longitude|distance|units"},
		{typeName: "Location", query: "near=91|0", err: "is not a latitude"},
		{typeName: "Location", query: "near=0|-180.1", err: "is not a longitude"},
		{typeName: "Location", query: "near=NaN|0", err: "is not a latitude"},
		{typeName: "Location", query: "near=0|0|-1", err: "is not a distance"},
		{typeName: "Location", query: "near=0|0|1e999", err: "is not a distance"},
		{typeName: "Location", query: "near=0|0|1|furlong", err: "give one of km, m, [mi_i]"},
	})
	query, err := Parse(values(t, "near=1|2,3|4&organization.name=x"), Options{Type: "Location"})
	if err != nil || len(query.Near) != 2 {
		t.Errorf("got the places %v, %v", query.Near, err)
	}
}

func TestRule09Phonetic(t *testing.T) {
	sound := func(code string) store.Condition { return text("phonetic", store.Exactly, code) }
	read(t, []reading{
		{typeName: "Patient", query: "phonetic=Peter+Robert", want: store.All{store.Any{sound("PTR")}, store.Any{sound("RPRT")}}},
		{typeName: "Patient", query: "phonetic=123", err: "no word with a sound"},
		{typeName: "Patient", query: "phonetic:exact=x", err: "supported modifiers: missing"},
	})
}

func TestRule10Escapes(t *testing.T) {
	read(t, []reading{
		{typeName: "Patient", query: `identifier=a\,b\|c\\d\$`, want: code("identifier", `a,b|c\d$`)},
		{typeName: "Patient", query: `name=a\,b,c`, want: store.Any{text("name", store.StartsWith, "a,b"), text("name", store.StartsWith, "c")}},
		{typeName: "Device", query: `url=http://a/\$b`, want: text("url", store.Exactly, "http://a/$b")},
		{typeName: "Patient", query: `name=a\b`, err: "must be before"},
		{typeName: "Patient", query: `name=a\`, err: "must be before"},
	})
	query, err := Parse(values(t, "name=a,b&name=c&active=true"), options(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	want := store.All{
		code("active", "true"),
		store.Any{text("name", store.StartsWith, "a"), text("name", store.StartsWith, "b")},
		text("name", store.StartsWith, "c"),
	}
	if diff := cmp.Diff(store.Condition(want), query.Where); diff != "" {
		t.Errorf("comma is or, repetition is and: %s", diff)
	}
}

func TestRule11ChainsAndHas(t *testing.T) {
	chain := func(param, typeName string, where store.Condition) store.Chain {
		return store.Chain{Param: param, Type: typeName, Where: where}
	}
	by := func(typeName, param string, where store.Condition) store.ReferredBy {
		return store.ReferredBy{Type: typeName, Param: param, Where: where}
	}
	hl7 := text("name", store.StartsWith, "hl7")
	read(t, []reading{
		{typeName: "Patient", query: "organization.name=HL7", want: chain("organization", "Organization", hl7)},
		{typeName: "Patient", query: "general-practitioner:Practitioner.name=HL7", want: chain("general-practitioner", "Practitioner", hl7)},
		{typeName: "Patient", query: "general-practitioner:practitioner-role.practitioner=1", want: chain("general-practitioner", "PractitionerRole", store.RefersToID{Param: "practitioner", Types: []string{"Practitioner"}, ID: "1"})},
		{typeName: "Organization", query: "_has:practitioner-role:organization:practitioner:practitioner.name=HL7", want: by("PractitionerRole", "organization", chain("practitioner", "Practitioner", hl7))},
		// A role has no name: only the types that have the parameter are meant.
		{typeName: "Patient", query: "general-practitioner.name=HL7", want: store.Any{
			chain("general-practitioner", "Organization", hl7), chain("general-practitioner", "Practitioner", hl7),
		}},
		{typeName: "Patient", query: "organization.partof.name:exact=HL7", want: chain("organization", "Organization", chain("partof", "Organization", text("name", store.Exactly, "HL7")))},
		{typeName: "Patient", query: "organization.type:not=a", want: chain("organization", "Organization", not(code("type", "a")))},
		{typeName: "Patient", query: "organization._id=A", want: chain("organization", "Organization", store.IDIn{"a"})},
		{typeName: "Patient", query: "_has:Group:member:code=a,b", want: by("Group", "member", store.Any{code("code", "a"), code("code", "b")})},
		{typeName: "Patient", query: "_has=Group:member:code=a", want: by("Group", "member", code("code", "a"))},
		{typeName: "Patient", query: "_has=group:member:code:not=a", want: by("Group", "member", not(code("code", "a")))},
		{typeName: "Practitioner", query: "_has:Patient:general-practitioner:_has:Group:member:code=a", want: by("Patient", "general-practitioner", by("Group", "member", code("code", "a")))},
		{typeName: "Practitioner", query: "_has=Patient:general-practitioner:_has:Group:member:code=a", want: by("Patient", "general-practitioner", by("Group", "member", code("code", "a")))},
		{typeName: "Organization", query: "_has:Patient:organization:general-practitioner:Practitioner.name=HL7", want: by("Patient", "organization", chain("general-practitioner", "Practitioner", hl7))},
		{typeName: "Patient", query: "organization._has:Location:organization:name=HL7", want: chain("organization", "Organization", by("Location", "organization", hl7))},
		{typeName: "Patient", query: "organization._has=Location:organization:name=HL7", want: chain("organization", "Organization", by("Location", "organization", hl7))},
		{typeName: "Patient", query: "gender.name=x", err: "gender is a token parameter; only a reference"},
		{typeName: "Patient", query: "organization:Patient.name=x", err: `"Patient" is not a supported target type of organization; supported target types: Organization`},
		{typeName: "Patient", query: "organization:patient.name=x", err: `"patient" is not a supported target type of organization; supported target types: Organization`},
		{typeName: "Patient", query: "organization.partof.active=x", err: "chain link 1, to Organization: chain link 2, to Organization: "},
		{typeName: "Patient", query: "_has:Group:member=x", err: "is not complete"},
		{typeName: "Patient", query: "_has=Group:member:code", err: "has no value"},
		{typeName: "Patient", query: "_has:Observation:subject:code=x", err: `"Observation" is not a supported resource type`},
		{typeName: "Patient", query: "_has:Group:code:code=x", err: `"code" is not a reference parameter of Group; supported reference parameters: managing-entity, member, patient`},
		{typeName: "Location", query: "_has:Group:member:code=x", want: by("Group", "member", code("code", "x"))}, // which none can be
		{typeName: "Patient", query: "_has:Group:member:actual=x", err: `_has level 1, on Group: "x" is neither true nor false`},
	})
	for query, want := range map[string]string{
		"organization.nme=x":         `parameter "organization.nme": chain link 1: "nme" is not known for Organization; did you mean name?`,
		"_has:Group:member:x=y":      `parameter "_has:Group:member:x": _has level 1, on Group: "x" is not known for Group; supported parameters: _id,`,
		"general-practitioner.nme=x": `parameter "general-practitioner.nme": chain link 1: "nme" is not known for Organization, Practitioner, PractitionerRole; did you mean name?`,
		"general-practitioner.=":     "",
	} {
		_, err := Parse(values(t, query), options(Options{}))
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
}

// TestRule12Missing parses :missing for each parameter of each type.
func TestRule12Missing(t *testing.T) {
	for _, kind := range r4.Types {
		for _, p := range ParametersOf(kind.Name) {
			query := p.Name + ":missing="
			switch {
			case p.Type == "composite":
				read(t, []reading{{typeName: kind.Name, query: query + "true", err: "supported modifiers: none"}})
			case p.Name == paramID || p.Name == paramLastUpdated:
				read(t, []reading{
					{typeName: kind.Name, query: query + "true", want: store.Any{}}, {typeName: kind.Name, query: query + "false", want: store.All{}},
				})
			default:
				present := store.Present{Param: p.Name}
				read(t, []reading{
					{typeName: kind.Name, query: query + "true", want: not(present)},
					{typeName: kind.Name, query: query + "false", want: present},
					{typeName: kind.Name, query: query + "yes", err: `"yes" is neither true nor false`},
					{typeName: kind.Name, query: query + "true,false", err: "is neither true nor false"},
				})
			}
		}
	}
}

func TestRule13Hierarchy(t *testing.T) {
	around := func(id string, above bool) store.RefersAround {
		return store.RefersAround{Param: "partof", To: store.Reference{Type: "Organization", ID: id}, Above: above}
	}
	read(t, []reading{
		{typeName: "Organization", query: "partof:below=A", want: around("a", false)},
		{typeName: "Organization", query: "partof:above=Organization/A", want: around("a", true)},
		{typeName: "Location", query: "partof:above=1", want: store.RefersAround{Param: "partof", To: store.Reference{Type: "Location", ID: "1"}, Above: true}},
		{typeName: "Location", query: "partof:above=Organization/1", err: "is not a reference to the type Location"},
		{typeName: "Location", query: "organization:above=1", err: "supported modifiers: Organization, identifier, missing"},
		{typeName: "Patient", query: "patient:above=1", err: "supported modifiers: Patient, identifier, missing"},
	})
}

// TestRule14Privacy checks ReachedTypes: the types, other than the searched ones, to which the caller's
// rights are applied.
func TestRule14Privacy(t *testing.T) {
	for query, want := range map[string][]string{
		"name=x&patient=1&_sort=name":                    nil,
		"organization.partof.endpoint.name=x":            {"Endpoint", "Organization"},
		"general-practitioner:Practitioner.name=x":       {"Practitioner"},
		"general-practitioner.name=x":                    {"Organization", "Practitioner"},
		"_has:Group:member:managing-entity.name=x":       {"Group", "Organization", "Practitioner", "RelatedPerson"},
		"_include=Patient:general-practitioner":          {"Organization", "Practitioner", "PractitionerRole"},
		"_include=Patient:link:RelatedPerson":            {"RelatedPerson"},
		"_revinclude=RelatedPerson:patient":              {"RelatedPerson"},
		"_include=Patient:*":                             {"Organization", "Practitioner", "PractitionerRole", "RelatedPerson"},
		"_include=Patient:link&_revinclude=Patient:link": {"RelatedPerson"},
		"nme.x=1&organization.nme=1":                     nil,
	} {
		got, err := Parse(values(t, query), options(Options{Lenient: true}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.ReachedTypes); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	all, err := Parse(values(t, "_revinclude=*"), options(Options{}))
	if err != nil || len(all.ReachedTypes) != len(r4.Types)-1 {
		t.Errorf("everything reaches %v, %v", all.ReachedTypes, err)
	}
}
