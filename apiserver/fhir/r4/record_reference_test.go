package r4

import "testing"

func TestSplitReference(t *testing.T) {
	type parts struct {
		base, typ, id string
		ok            bool
	}
	for reference, want := range map[string]parts{
		"Patient/1":                             {"", "Patient", "1", true},
		"Patient/aB.-9/_history/2":              {"", "Patient", "aB.-9", true},
		"Medication/1":                          {"", "Medication", "1", true},
		"https://h.example/fhir/Patient/1":      {"https://h.example/fhir", "Patient", "1", true},
		"http://h.example/Patient/1/_history/x": {"http://h.example", "Patient", "1", true},
		"https://h.example/site/s/fhir/practitioner-role/1/_history/2": {"https://h.example/site/s/fhir", "PractitionerRole", "1", true},
		"https://h.example/site/s/fhir/medication/1":                   {},
		"https://h.example/site/s/fhir/Organization/1":                 {"https://h.example/site/s/fhir", "Organization", "1", true},
		"":                           {},
		"1":                          {},
		"Patient/":                   {},
		"Patient/1/":                 {},
		"Patient/1/_history/":        {},
		"Patient/1/_history/a b":     {},
		"Patient/1 ":                 {},
		"patient/1":                  {},
		"Animal/1":                   {},
		"x/Patient/1":                {},
		"/Patient/1":                 {},
		"http://Patient/1":           {},
		"https:///Patient/1":         {},
		"ftp://h.example/Patient/1":  {},
		"urn:uuid:Patient/1":         {},
		"#Patient/1":                 {},
		"https://h.example/Animal/1": {},
		"https://h.example/Patient/1/_history/2/_history/3": {},
	} {
		var got parts
		got.base, got.typ, got.id, got.ok = SplitReference(reference)
		if got != want {
			t.Errorf("%q: got %+v, want %+v", reference, got, want)
		}
	}
}

func TestSplitAddress(t *testing.T) {
	type parts struct {
		base, typ, id string
		ok            bool
	}
	for reference, want := range map[string]parts{
		"PractitionerRole/aB": {"", "PractitionerRole", "aB", true},
		"https://h.example/fhir/PractitionerRole/1/_history/2":  {"https://h.example/fhir", "PractitionerRole", "1", true},
		"https://h.example/fhir/practitioner-role/1":            {"https://h.example/fhir", "PractitionerRole", "1", true},
		"https://h.example/fhir/practitioner-role/1/_history/2": {"https://h.example/fhir", "PractitionerRole", "1", true},
		"practitioner-role/1":                                   {},
		"patient/1":                                             {},
		"Medication/1":                                          {},
		"https://h.example/fhir/Medication/1":                   {},
		"https://h.example/fhir/PRACTITIONER-role/1":            {},
		"https://h.example/fhir/patient/1/2":                    {},
		"urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a":         {},
		"": {},
	} {
		var got parts
		got.base, got.typ, got.id, got.ok = SplitAddress(reference)
		if got != want {
			t.Errorf("%q: got %+v, want %+v", reference, got, want)
		}
	}
}
