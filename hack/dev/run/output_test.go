package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/dev/run/preflight"
)

// TestSuggestions holds that no command lists records that the demo site does not have.
func TestSuggestions(t *testing.T) {
	const (
		curl     = `curl -H "Authorization: Bearer $(cat .local/token)" `
		patients = curl + "'http://s/fhir/patient?_count=3&_pretty=true'"
		slots    = curl + "'http://s/ahds/v1/availability-slot?isBooked=true'"
		create   = curl + `-H 'Content-Type: application/json' -d '{"resourceType":"Patient","name":[{"text":"Rex"}]}' 'http://s/fhir/patient?_pretty=true'`
		list     = "KUBECONFIG=.local/kubeconfig bin/kubectl get patients -n demo"
	)
	for data, want := range map[string][]string{
		"clinic": {patients, slots, create, list},
		"hl7":    {patients, create, list},
		"none":   {create, list},
	} {
		got := suggestions("http://s", "demo", ".local", options{Settings: preflight.Settings{Data: data}, bin: "bin"})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
}
