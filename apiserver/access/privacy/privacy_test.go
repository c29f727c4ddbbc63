package privacy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// confidential are the labels of a record with security labels of the confidentiality system.
func confidential(codes ...string) store.Labels {
	var values []store.IndexValue
	for _, code := range codes {
		values = append(values, store.IndexValue{Param: paramSecurity, Value: store.Token{System: ConfidentialitySystem, Code: code}})
	}
	return Labels("Patient", values)
}

// systemless are the labels of a record with a security label without a system.
func systemless(code string) store.Labels {
	return Labels("Patient", []store.IndexValue{{Param: paramSecurity, Value: store.Token{Code: code}}})
}

func with(labels store.Labels, values ...store.IndexValue) store.Labels {
	labels.Names = append(labels.Names, Labels("Patient", values).Names...)
	return labels
}

var (
	recall  = store.IndexValue{Param: paramTag, Value: store.Token{System: "urn:tags", Code: "recall"}}
	profile = store.IndexValue{Param: paramProfile, Value: store.Text{Folded: "http://p|1.0", Original: "http://p|1.0"}}

	conf   = func(code string) []Coding { return []Coding{{ConfidentialitySystem, code}} }
	chiefs = &Callers{Groups: []string{"chiefs"}}

	nobody = access.Caller{Name: "site:clinic:ann", Issuer: "clinic"}
	chief  = access.Caller{Name: "site:clinic:bo", Issuer: "clinic", IssuerGroups: []string{"chiefs"}}
	robot  = access.Caller{Name: "system:serviceaccount:clinic:robot", Groups: []string{"chiefs", "system:serviceaccounts"}}
)

func TestVisible(t *testing.T) {
	privileged, glass := Rights{Privileged: true}, Rights{BreaksGlass: true}
	veryRestricted := Rule{Name: "very-restricted", Security: conf("V"), Allow: chiefs}
	recalls := Rule{Name: "recalls", Tags: []Coding{{Code: "recall"}}, Deny: chiefs}
	for name, test := range map[string]struct {
		rules  Rules
		caller access.Caller
		rights Rights
		kind   string // default Patient
		labels store.Labels
		want   bool
	}{
		"no label":                          {caller: nobody, want: true},
		"N":                                 {caller: nobody, labels: confidential("N"), want: true},
		"R":                                 {caller: nobody, labels: confidential("R")},
		"V":                                 {caller: nobody, labels: confidential("V")},
		"v, as searches compare codes":      {caller: nobody, labels: confidential("v")},
		"R of a Device":                     {caller: nobody, labels: confidential("R"), kind: "Device"},
		"R without a system":                {caller: nobody, labels: systemless("R")},
		"R of another system":               {caller: nobody, labels: Labels("Patient", []store.IndexValue{{Param: paramSecurity, Value: store.Token{System: "urn:x", Code: "R"}}}), want: true},
		"V without a system, a rule admits": {rules: Rules{Rules: []Rule{veryRestricted}}, caller: chief, labels: systemless("V"), want: true},
		"v without a system, a rule does not admit": {rules: Rules{Rules: []Rule{veryRestricted}}, caller: nobody, labels: systemless("v")},
		"V without a system, privileged":            {rules: Rules{Rules: []Rule{veryRestricted}}, caller: nobody, rights: privileged, labels: systemless("V")},
		"V without a system, a deny":                {rules: Rules{Rules: []Rule{{Security: conf("V"), Deny: chiefs}}}, caller: chief, rights: privileged, labels: systemless("V")},
		"N without a system, a rule":                {rules: Rules{Rules: []Rule{{Security: conf("N"), Allow: chiefs}}}, caller: nobody, labels: systemless("N"), want: true},
		"V without a system, a rule about V of another system": {
			rules:  Rules{Rules: []Rule{{Security: []Coding{{"urn:x", "V"}}, Allow: chiefs}}},
			caller: nobody, labels: systemless("V"),
		},
		"R, privileged":                     {caller: nobody, rights: privileged, labels: confidential("R"), want: true},
		"V, with broken glass":              {caller: nobody, rights: glass, labels: confidential("V"), want: true},
		"V, a rule admits":                  {rules: Rules{Rules: []Rule{veryRestricted}}, caller: chief, labels: confidential("V"), want: true},
		"V, a rule does not admit":          {rules: Rules{Rules: []Rule{veryRestricted}}, caller: nobody, labels: confidential("V")},
		"V, a rule replaces the privilege":  {rules: Rules{Rules: []Rule{veryRestricted}}, caller: nobody, rights: privileged, labels: confidential("V")},
		"V, no allow, broken glass":         {rules: Rules{Rules: []Rule{veryRestricted}}, caller: nobody, rights: glass, labels: confidential("V"), want: true},
		"R, a rule about V admits":          {rules: Rules{Rules: []Rule{veryRestricted}}, caller: chief, labels: confidential("R"), want: true},
		"V, a rule about R admits":          {rules: Rules{Rules: []Rule{{Security: conf("R"), Allow: chiefs}}}, caller: chief, labels: confidential("V")},
		"R and V, a rule about R admits":    {rules: Rules{Rules: []Rule{{Security: conf("R"), Allow: chiefs}}}, caller: chief, labels: confidential("R", "V")},
		"V, a rule about other records":     {rules: Rules{Rules: []Rule{{Security: conf("V"), Tags: []Coding{{Code: "x"}}, Allow: chiefs}}}, caller: chief, labels: confidential("V")},
		"V, a rule that only denies others": {rules: Rules{Rules: []Rule{{Security: conf("V"), Deny: &Callers{Groups: []string{"temps"}}}}}, caller: nobody, labels: confidential("V")},
		"a deny":                            {rules: Rules{Rules: []Rule{recalls}}, caller: chief, rights: privileged, labels: with(store.Labels{}, recall)},
		"a deny, broken glass":              {rules: Rules{Rules: []Rule{recalls}}, caller: chief, rights: glass, labels: with(store.Labels{}, recall)},
		"a deny of others":                  {rules: Rules{Rules: []Rule{recalls}}, caller: nobody, labels: with(store.Labels{}, recall), want: true},
		"a deny wins over an allow":         {rules: Rules{Rules: []Rule{recalls, veryRestricted}}, caller: chief, labels: with(confidential("V"), recall)},
		"all allows must admit": {
			rules:  Rules{Rules: []Rule{veryRestricted, {Tags: []Coding{{"urn:tags", "recall"}}, Allow: &Callers{Groups: []string{"recallers"}}}}},
			caller: chief, labels: with(confidential("V"), recall),
		},
		"a tag of another system":          {rules: Rules{Rules: []Rule{{Tags: []Coding{{"urn:other", "recall"}}, Allow: &Callers{}}}}, caller: chief, labels: with(store.Labels{}, recall), want: true},
		"an allow of nobody":               {rules: Rules{Rules: []Rule{{Tags: []Coding{{"urn:tags", "recall"}}, Allow: &Callers{}}}}, caller: chief, rights: privileged, labels: with(store.Labels{}, recall)},
		"a profile in whatever version":    {rules: Rules{Rules: []Rule{{Profiles: []string{"http://p"}, Allow: chiefs}}}, caller: nobody, labels: with(store.Labels{}, profile)},
		"a profile in another version":     {rules: Rules{Rules: []Rule{{Profiles: []string{"http://p|2.0"}, Allow: chiefs}}}, caller: nobody, labels: with(store.Labels{}, profile), want: true},
		"everything of a type":             {rules: Rules{Rules: []Rule{{Types: []string{"Patient"}, Allow: chiefs}}}, caller: nobody, rights: privileged},
		"a Patient's rule for a Person":    {rules: Rules{Rules: []Rule{{Types: []string{"Patient"}, Allow: chiefs}}}, caller: nobody, kind: "Person"},
		"a Patient's rule for a Group":     {rules: Rules{Rules: []Rule{{Types: []string{"Patient"}, Allow: chiefs}}}, caller: nobody, kind: "Group", want: true},
		"closed":                           {rules: Rules{Closed: true}, caller: nobody},
		"closed, privileged":               {rules: Rules{Closed: true}, caller: nobody, rights: privileged, want: true},
		"closed, a rule matches":           {rules: Rules{Closed: true, Rules: []Rule{{Tags: []Coding{{Code: "recall"}}, Allow: chiefs}}}, caller: chief, labels: with(store.Labels{}, recall), want: true},
		"closed, no rule matches":          {rules: Rules{Closed: true, Rules: []Rule{{Tags: []Coding{{Code: "recall"}}, Allow: chiefs}}}, caller: chief},
		"a group of the cluster":           {rules: Rules{Rules: []Rule{{Allow: &Callers{Groups: []string{"kubernetes:chiefs"}}}}}, caller: robot, want: true},
		"the name of one by an issuer":     {rules: Rules{Rules: []Rule{{Allow: &Callers{Groups: []string{"kubernetes:chiefs"}}}}}, caller: chief},
		"an issuer's group, in Kubernetes": {rules: Rules{Rules: []Rule{{Allow: chiefs}}}, caller: robot},
		"a group of one issuer":            {rules: Rules{Issuers: []string{"clinic", "lab"}, Rules: []Rule{{Allow: &Callers{Groups: []string{"clinic/chiefs"}}}}}, caller: chief, want: true},
		"the group of another issuer":      {rules: Rules{Issuers: []string{"clinic", "lab"}, Rules: []Rule{{Allow: &Callers{Groups: []string{"lab/chiefs"}}}}}, caller: chief},
		"a group that looks like one of another issuer": {
			rules:  Rules{Issuers: []string{"clinic", "lab"}, Rules: []Rule{{Allow: &Callers{Groups: []string{"lab/chiefs"}}}}},
			caller: access.Caller{Issuer: "clinic", IssuerGroups: []string{"lab/chiefs"}},
		},
		"a scope": {rules: Rules{Rules: []Rule{{Allow: &Callers{Scopes: []string{"paddock.vip"}}}}}, caller: access.Caller{Scopes: []string{"openid", "paddock.vip"}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.kind == "" {
				test.kind = "Patient"
			}
			for i := range test.rules.Rules {
				test.rules.Rules[i].Name = "rule"
			}
			view := &View{Rules: &test.rules, Caller: test.caller, Rights: func(string) (Rights, error) { return test.rights, nil }, Reads: reads}
			condition, err := view.Condition(test.kind)
			if err != nil {
				t.Fatal(err)
			}
			if got := holds(condition, test.labels); got != test.want {
				t.Errorf("visible %t, want %t: %#v", got, test.want, condition)
			}
			if hidden := view.HiddenBy(test.kind, test.labels); (hidden == "" || hidden == "link") != test.want {
				t.Errorf("hidden by %q, visible %t", hidden, test.want)
			}
		})
	}
}

// reads is the View.Reads of a caller who may read all types.
func reads(string) (bool, error) { return true, nil }

// TestLinks shows on which records those with links depend.
func TestLinks(t *testing.T) {
	rights := map[string]Rights{"Device": {Privileged: true}, "DeviceMetric": {Privileged: true}}
	readsPatients := true
	view := &View{
		Rules: &Rules{}, Caller: nobody, Rights: func(kind string) (Rights, error) { return rights[kind], nil },
		Reads: func(string) (bool, error) { return readsPatients, nil },
	}
	patient, _ := view.Condition("Patient")
	device, _ := view.Condition("Device")
	metric, _ := view.Condition("DeviceMetric")
	if diff := cmp.Diff(store.Condition(store.LinksTo{Param: "patient", Type: "Patient", Where: patient}), device); diff != "" {
		t.Errorf("a Device (-want +got):\n%s", diff)
	}
	want := store.All{store.LinksTo{Param: "parent", Type: "Device", Where: device}, store.LinksTo{Param: "source", Type: "Device", Where: device}}
	if diff := cmp.Diff(store.Condition(want), metric); diff != "" {
		t.Errorf("a DeviceMetric (-want +got):\n%s", diff)
	}
	rights["Patient"], readsPatients = Rights{Privileged: true}, false
	if device, _ = view.Condition("Device"); !cmp.Equal(device, store.Condition(store.LinksTo{Param: "patient", Type: "Patient", Where: store.Any{}})) {
		t.Errorf("a Device, without the right to Patients: %#v", device)
	}
	readsPatients = true
	if device, _ = view.Condition("Device"); !store.IsEverything(device) {
		t.Errorf("a Device, with all Patients visible: %#v", device)
	}
}

func TestLowers(t *testing.T) {
	rules := Rules{Rules: []Rule{{Tags: []Coding{{Code: "recall"}}, Allow: chiefs}}}
	tagged := with(store.Labels{}, recall)
	for name, test := range map[string]struct {
		before, after store.Labels
		want          bool
	}{
		"nothing":                   {},
		"raised":                    {before: confidential("N"), after: confidential("V")},
		"V to R":                    {before: confidential("V"), after: confidential("R"), want: true},
		"R to V":                    {before: confidential("R"), after: confidential("V")},
		"R and V to V":              {before: confidential("R", "V"), after: confidential("V")},
		"R to N":                    {before: confidential("R"), after: confidential("N"), want: true},
		"R to nothing":              {before: confidential("R"), want: true},
		"N to nothing":              {before: confidential("N")},
		"a tag that a rule matches": {before: tagged, want: true},
		"a tag that stays":          {before: tagged, after: with(confidential("R"), recall)},
	} {
		if got := rules.Lowers("Patient", test.before, test.after); got != test.want {
			t.Errorf("%s: lowers %t, want %t", name, got, test.want)
		}
	}
}
