package server

import "testing"

func TestAPIOf(t *testing.T) {
	for path, want := range map[string]string{
		"/site/1042/fhir":               apiFHIR,
		"/site/1042/fhir/":              apiFHIR,
		"/site/1042/fhir/patient/1":     apiFHIR,
		"/site/1042/ahds":               apiAHDS,
		"/site/1042/ahds/v1/slots":      apiAHDS,
		"/site/ahds/fhir/patient/ahds":  apiFHIR,
		"/site/fhir/ahds/v1/slots/fhir": apiAHDS,
		"/site/1042/fhirs":              apiNone,
		"/site/1042/FHIR":               apiNone,
		"/site/1042":                    apiNone,
		"/site/fhir":                    apiNone,
		"/site//fhir":                   apiFHIR,
		"/sites/1042/fhir":              apiNone,
		"/1042/fhir":                    apiNone,
		"/fhir":                         apiNone,
		"/":                             apiNone,
		"":                              apiNone,
	} {
		if got := apiOf(path); got != want {
			t.Errorf("apiOf(%q) = %s, want %s", path, got, want)
		}
	}
}
