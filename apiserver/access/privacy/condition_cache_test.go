package privacy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// rememberedRules have rules that allow and deny, for one type or for all.
func rememberedRules(closed bool) *Rules {
	return &Rules{Closed: closed, Issuers: []string{"clinic"}, Rules: []Rule{
		{Name: "very-restricted", Security: conf("V"), Allow: chiefs},
		{Name: "recalls", Tags: []Coding{{Code: "recall"}}, Deny: &Callers{Groups: []string{"chiefs", "interns"}}},
		{Name: "devices", Types: []string{"Device"}, Tags: []Coding{{Code: "implant"}}, Allow: &Callers{Scopes: []string{"implants"}}},
	}}
}

// TestRemember compares the conditions of rules that remember them with those of rules that do not:
// no caller gets what was compiled for another.
func TestRemember(t *testing.T) {
	callers := []access.Caller{nobody, chief, robot, {Name: "b", Issuer: "clinic", IssuerGroups: []string{"interns"}}, {Name: "a", Scopes: []string{"implants"}}}
	for _, closed := range []bool{false, true} {
		fresh, remembering := rememberedRules(closed), rememberedRules(closed)
		remembering.Remember()
		for range 2 { // compiled the first time, remembered the second
			for _, kind := range []string{"Patient", "Practitioner", "Device", "DeviceMetric", "Organization"} {
				for _, caller := range callers {
					for bits := range 8 {
						rights := Rights{Privileged: bits&1 != 0, BreaksGlass: bits&2 != 0}
						condition := func(rules *Rules) store.Condition {
							view := &View{Rules: rules, Caller: caller, Rights: func(string) (Rights, error) { return rights, nil }, Reads: func(string) (bool, error) { return bits&4 != 0, nil }}
							made, err := view.Condition(kind)
							if err != nil {
								t.Fatal(err)
							}
							return made
						}
						if diff := cmp.Diff(condition(fresh), condition(remembering), cmpopts.EquateEmpty()); diff != "" {
							t.Fatalf("%s for %s, %+v (-compiled +remembered):\n%s", kind, caller.Name, rights, diff)
						}
					}
				}
			}
		}
		if n := len(remembering.cache.compiled); n == 0 || n > 5*5*4 {
			t.Errorf("%d conditions are remembered", n)
		}
	}
}

// TestAppendText shows that conditions have the same text where they are the same, and only there.
func TestAppendText(t *testing.T) {
	a, b := store.HasLabel("a"), store.HasLabel("b")
	conditions := []store.Condition{
		store.All{},
		store.Any{},
		a, b, store.HasLabel(`a","b`),
		store.Not{Condition: a},
		store.Not{Condition: b},
		store.All{a},
		store.All{a, b},
		store.All{b, a},
		store.Any{a, b},
		store.All{a, store.All{b}},
		store.All{store.All{a}, b},
		store.Not{Condition: store.All{a, b}},
		store.All{store.Not{Condition: a}, b},
		store.LinksTo{Param: "p", Type: "t", Where: a},
		store.LinksTo{Param: "p", Type: "t", Where: b},
		store.LinksTo{Param: "p", Type: "u", Where: a},
		store.LinksTo{Param: "q", Type: "t", Where: a},
		store.LinksTo{Param: `p"t`, Type: "", Where: a},
		store.IDIn{"a"},
		store.IDIn{"b"},
	}
	seen := map[string]store.Condition{}
	for _, condition := range conditions {
		text := string(AppendText(nil, condition))
		if other, twice := seen[text]; twice {
			t.Errorf("%#v and %#v are both %s", other, condition, text)
		}
		seen[text] = condition
		if again := string(AppendText([]byte("x"), condition)); again != "x"+text {
			t.Errorf("%#v is %s and %s", condition, text, again)
		}
	}
}

// BenchmarkCondition measures what two rules add to a request.
func BenchmarkCondition(b *testing.B) {
	rules := rememberedRules(false)
	rules.Remember()
	b.ReportAllocs()
	for b.Loop() {
		view := &View{Rules: rules, Caller: nobody, Rights: func(string) (Rights, error) { return Rights{}, nil }, Reads: reads}
		if _, err := view.Condition("Patient"); err != nil {
			b.Fatal(err)
		}
	}
}
