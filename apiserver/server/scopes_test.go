package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestScopesOnDevices hides the Devices of Patients that scopes hide.
func TestScopesOnDevices(t *testing.T) {
	bodies := map[store.Key]string{
		{Type: "Device", ID: "of-rex"}:         `{"resourceType":"Device","patient":{"reference":"Patient/rex"}}`,
		{Type: "Device", ID: "of-luna"}:        `{"resourceType":"Device","patient":{"reference":"Patient/luna"}}`,
		{Type: "Device", ID: "shared"}:         `{"resourceType":"Device"}`,
		{Type: "DeviceMetric", ID: "with"}:     `{"resourceType":"DeviceMetric","source":{"reference":"Device/of-luna"}}`,
		{Type: "DeviceMetric", ID: "parent"}:   `{"resourceType":"DeviceMetric","parent":{"reference":"Device/of-luna"}}`,
		{Type: "DeviceMetric", ID: "detached"}: `{"resourceType":"DeviceMetric"}`,
	}
	tests := map[string]struct {
		scopes, verb, recordType string
		want                     string
	}{
		"every Patient":                 {"user/Patient.rs user/Device.rs", "get", "Device", "of-luna of-rex shared"},
		"every Patient by id":           {"user/Patient.r user/Patient.s?gender=male user/Device.rs", "list", "Device", "of-luna of-rex shared"},
		"no Patient":                    {"user/Device.rs", "get", "Device", "of-luna of-rex shared"}, // privacy.View hides them
		"some Patients":                 {"user/Patient.rs?gender=male user/Device.rs", "get", "Device", "shared"},
		"one Patient":                   {"patient/Patient.r user/Device.rs", "get", "Device", "of-rex shared"},
		"one Patient, in searches":      {"patient/Patient.r user/Device.rs", "list", "Device", "of-rex shared"},
		"one Patient, to delete":        {"patient/Patient.s user/Device.cruds", "delete", "Device", "of-rex shared"},
		"one Patient, to create":        {"patient/Patient.r user/Device.cruds", "create", "Device", "of-luna of-rex shared"},
		"perhaps one Patient":           {"patient/Patient.r?gender=male user/Device.rs", "get", "Device", "shared"},
		"a search of Devices":           {"patient/Patient.r user/Device.rs?patient=Patient/luna", "get", "Device", ""},
		"Devices of one Patient":        {"user/Patient.rs?gender=male patient/Device.rs", "get", "Device", "of-rex"},
		"a compartment":                 {"patient/*.rs", "get", "Device", "of-rex"},
		"metrics of some Patients":      {"user/Patient.rs?gender=male user/DeviceMetric.rs", "get", "DeviceMetric", "detached"},
		"metrics of one Patient":        {"patient/Patient.rs user/*.rs?_id=detached user/DeviceMetric.rs", "get", "DeviceMetric", "detached"},
		"metrics, with every Patient":   {"user/*.rs", "get", "DeviceMetric", "detached parent with"},
		"a caller who is not by scopes": {"", "get", "Device", "of-luna of-rex shared"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := &viewer{
				admission: &admission{publicURL: "https://fhir.example.org", limits: limits.New(time.Now)},
				site:      sites.ServedSite{Settings: settings.Settings{ID: "1042"}},
				caller:    access.Caller{SMART: test.scopes != "", Scopes: strings.Fields(test.scopes), Patient: "rex"},
			}
			restriction, err := v.restrict(test.verb, test.recordType)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for key, body := range bodies {
				if key.Type == test.recordType && (restriction == nil || restriction.Holds(key, store.Body{JSON: []byte(body)})) {
					got[key.ID] = true
				}
			}
			if visible := strings.Join(slices.Sorted(maps.Keys(got)), " "); visible != test.want {
				t.Errorf("got %q, want %q", visible, test.want)
			}
		})
	}
}
