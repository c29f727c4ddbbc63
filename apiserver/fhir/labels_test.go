package fhir_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestLabelsOf shows that reading meta alone finds the same labels as the index has.
func TestLabelsOf(t *testing.T) {
	for name, text := range map[string]string{
		"none": `{"resourceType":"Patient"}`,
		"all kinds": `{"id":"x","meta":{"lastUpdated":"2020-01-01T00:00:00Z","security":[{"system":"urn:s","code":"V","display":"{\"]"},{"code":"R"}],
			"tag":[ { "system" : "urn:t" , "code":"Recall" } ], "profile":["http://p|1.0","http://q"]},"resourceType":"Patient","name":[{"text":"}"}]}`,
		"meta first, then more":                     `{"meta":{"tag":[{"code":"a"}]},"resourceType":"Patient","managingOrganization":{"reference":"#c"},"contained":[{"resourceType":"Organization","id":"c","name":"c","meta":{"tag":[{"code":"b"}]}}]}`,
		"escapes":                                   `{"resourceType":"Patient","meta":{"security":[{"system":"urn:s","code":"\u0056"}]}}`,
		"a name spelled in full":                    `{"resourceType":"Patient","m\u0065ta":{"security":[{"system":"urn:s","code":"V"}]}}`,
		"a Device's patient":                        `{"resourceType":"Device","patient":{"reference":"Patient/Rex"},"meta":{"security":[{"code":"R"}]}}`,
		"a Device's patient, by the contract's URL": `{"resourceType":"Device","patient":{"reference":"https://h.example/site/s/fhir/patient/Rex"}}`,
	} {
		kind := "Patient"
		if strings.HasPrefix(name, "a Device's patient") {
			kind = "Device"
		}
		read, err := r4.Read([]byte(text), r4.Options{Type: kind})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body := store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset}
		indexed := privacy.Labels(kind, extract.Values(kind, body.JSON))
		if diff := cmp.Diff(indexed, fhir.LabelsOf(kind, body)); diff != "" {
			t.Errorf("%s (-index +meta):\n%s", name, diff)
		}
		if kind == "Device" && (len(indexed.Links) != 1 || indexed.Links[0].To.Type != "Patient" || indexed.Links[0].To.ID != "rex") {
			t.Errorf("%s: %+v", name, indexed.Links)
		}
		if name == "all kinds" && len(indexed.Names) != 9 {
			t.Errorf("%s: %q", name, indexed.Names)
		}
	}
}
