// Package gitops tests the scripts by which Argo CD finds the health of Paddock's objects, in the interpreter that Argo CD
// uses. It is a module of its own so that its dependencies are not Paddock's.
package gitops

import (
	"os"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"go.yaml.in/yaml/v3"
)

func TestHealth(t *testing.T) {
	tests := map[string]struct{ kind, object, want string }{
		"a new Site":        {"Site", "{metadata: {generation: 1}}", "Progressing"},
		"a ready Site":      {"Site", site(1, "Ready: 'True', Stalled: 'False'"), "Healthy"},
		"a changed Site":    {"Site", site(2, "Ready: 'True'"), "Progressing"},
		"a Site that waits": {"Site", site(1, "Ready: 'False', Reconciling: 'True'"), "Progressing"},
		"a Site that needs a person, whichever condition is first": {"Site", site(1, "Ready: 'False', Stalled: 'True'"), "Degraded"},
		"a paused Site": {"Site", "{metadata: {generation: 1, annotations: {paddock.health/paused: ''}}}", "Suspended"},

		"a claim": {"SiteClaim", "{metadata: {}, spec: {siteRef: {namespace: oak, name: oak}}}", "Healthy"},

		"a new Webhook":      {"Webhook", "{metadata: {generation: 1}}", "Progressing"},
		"an accepted one":    {"Webhook", site(1, "Accepted: 'True', Disabled: 'False'"), "Healthy"},
		"one without Secret": {"Webhook", site(1, "Accepted: 'False'"), "Degraded"},
		"a disabled one":     {"Webhook", site(1, "Accepted: 'True', Disabled: 'True'"), "Suspended"},
		"a changed one":      {"Webhook", site(3, "Accepted: 'True'"), "Progressing"},
	}
	scripts := healthScripts(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, message := run(t, scripts["resource.customizations.health.paddock.health_"+test.kind], test.object)
			if got != test.want || message == "" {
				t.Errorf("got %s and the message %q, want %s", got, message, test.want)
			}
		})
	}
	if len(scripts) != 3 {
		t.Errorf("argocd-cm.yaml has %d scripts, want 3", len(scripts))
	}
}

// site is an object whose generation 1 was observed, with conditions as a list of types and statuses.
func site(generation int, conditions string) string {
	var statuses map[string]string
	var order yaml.Node
	text := "{" + conditions + "}"
	if err := yaml.Unmarshal([]byte(text), &statuses); err != nil {
		panic(err)
	}
	if err := yaml.Unmarshal([]byte(text), &order); err != nil {
		panic(err)
	}
	var list []map[string]string
	for i := 0; i < len(order.Content[0].Content); i += 2 {
		kind := order.Content[0].Content[i].Value
		list = append(list, map[string]string{"type": kind, "status": statuses[kind], "reason": "Reason", "message": "text"})
	}
	object, err := yaml.Marshal(map[string]any{
		"metadata": map[string]any{"generation": generation},
		"status":   map[string]any{"observedGeneration": 1, "conditions": list},
	})
	if err != nil {
		panic(err)
	}
	return string(object)
}

func healthScripts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../config/samples/argocd/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &configMap); err != nil {
		t.Fatal(err)
	}
	return configMap.Data
}

// run runs a script with the global obj, as Argo CD does.
func run(t *testing.T, script, object string) (status, message string) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(object), &value); err != nil {
		t.Fatal(err)
	}
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(state, value))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v", state.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, member := range v {
			table.RawSetString(name, toLua(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range v {
			table.Append(toLua(state, element))
		}
		return table
	case string:
		return lua.LString(v)
	case int:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	default:
		return lua.LNil
	}
}
