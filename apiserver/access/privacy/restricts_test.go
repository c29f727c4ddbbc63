package privacy

import (
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestRestricts(t *testing.T) {
	allowed := Rule{Name: "allowed", Tags: []Coding{{Code: "recall"}}, Allow: chiefs}
	denied := Rule{Name: "denied", Tags: []Coding{{Code: "recall"}}, Deny: chiefs}
	opened := Rule{Name: "opened", Tags: []Coding{{Code: "recall"}}}
	patients := Rule{Name: "patients", Types: []string{"Patient"}, Allow: chiefs}
	tagged := Labels("Patient", []store.IndexValue{recall})
	owned := store.Labels{Links: []store.Link{{Param: "patient", To: store.Reference{Type: "Patient", ID: "rex"}}}}
	for name, test := range map[string]struct {
		rules  Rules
		kind   string
		labels store.Labels
		want   bool
	}{
		"no label, no rule":                   {kind: "Patient"},
		"N":                                   {kind: "Patient", labels: confidential("N")},
		"R":                                   {kind: "Patient", labels: confidential("R"), want: true},
		"V without a system, a rule about V":  {rules: Rules{Rules: []Rule{{Security: conf("V"), Allow: chiefs}}}, kind: "Patient", labels: systemless("V"), want: true},
		"V of a Practitioner":                 {kind: "Practitioner", labels: confidential("V"), want: true},
		"a rule that allows some":             {rules: Rules{Rules: []Rule{allowed}}, kind: "Practitioner", labels: tagged, want: true},
		"a rule that denies it to some":       {rules: Rules{Rules: []Rule{denied}}, kind: "Practitioner", labels: tagged, want: true},
		"rules that do not match":             {rules: Rules{Rules: []Rule{allowed, denied}}, kind: "Practitioner"},
		"a rule about Patients, for people":   {rules: Rules{Rules: []Rule{patients}}, kind: "Practitioner", want: true},
		"a rule about Patients, for others":   {rules: Rules{Rules: []Rule{patients}}, kind: "Organization"},
		"a closed site":                       {rules: Rules{Closed: true}, kind: "Practitioner", want: true},
		"a closed site, opened by a rule":     {rules: Rules{Closed: true, Rules: []Rule{opened}}, kind: "Practitioner", labels: tagged},
		"a Device of a Patient, not followed": {kind: "Device", labels: owned, want: true},
		"a Device of nobody":                  {kind: "Device"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.rules.Restricts(test.kind, test.labels); got != test.want {
				t.Errorf("restricted: %t, want %t", got, test.want)
			}
		})
	}
}
