package kubernetes

import (
	"testing"

	"github.com/paddock-health/paddock/apiserver/access"
)

// TestIdentity shows that callers with different rights are never taken for each other.
func TestIdentity(t *testing.T) {
	callers := []access.Caller{
		{},
		{Name: "a"},
		{UID: "a"},
		{Name: "a", Groups: []string{"b"}},
		{Name: "a", Groups: []string{"b", "c"}},
		{Name: "a", Groups: []string{"bc"}},
		{Name: "a", Groups: []string{"b1:c"}},
		{Name: "a", Extra: map[string][]string{"b": {"c"}}},
		{Name: "a", Extra: map[string][]string{"b": nil, "c": nil}},
		{Name: "a", Groups: []string{"b"}, Extra: map[string][]string{"c": {}}},
		{Name: "a", Groups: []string{"b", "", "c"}},
		{Name: "a\x00b"},
	}
	seen := map[string]int{}
	for i, caller := range callers {
		key := identity(caller)
		if other, twice := seen[key]; twice {
			t.Errorf("%+v is taken for %+v", caller, callers[other])
		}
		seen[key] = i
	}
	one := access.Caller{Name: "a", Extra: map[string][]string{"x": {"1"}, "y": {"2"}, "z": {"3"}}}
	first := identity(one)
	for range 20 {
		if identity(one) != first {
			t.Fatal("a caller is not taken for itself")
		}
	}
}
