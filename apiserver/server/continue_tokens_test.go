package server

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/paddock-health/paddock/apiserver/aggregated"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestContinueTokens tests that a continue token is refused in any other listing, and expires.
func TestContinueTokens(t *testing.T) {
	tokens, err := search.NewTokens(func() [][]byte { return [][]byte{make([]byte, search.TokenKeySize)} })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pages := &continueTokens{tokens: tokens, now: func() time.Time { return now }}
	of := aggregated.Listing{SiteID: "oak", Resource: "patients", Selectors: "a=b", Caller: "ann", View: "v"}
	token := pages.Seal(of, store.Position("there"))
	if at, err := pages.Open(of, token); err != nil || string(at) != "there" {
		t.Fatalf("Open = %q, %v, want the sealed position", at, err)
	}
	for name, change := range map[string]func(*aggregated.Listing){
		"of another site":     func(l *aggregated.Listing) { l.SiteID = "elm" },
		"of another resource": func(l *aggregated.Listing) { l.Resource = "persons" },
		"of other selectors":  func(l *aggregated.Listing) { l.Selectors = "" },
		"of another caller":   func(l *aggregated.Listing) { l.Caller = "bo" },
		"of another view":     func(l *aggregated.Listing) { l.View = "" },
	} {
		other := of
		change(&other)
		if _, err := pages.Open(other, token); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v, want 400", name, err)
		}
	}
	now = now.Add(365 * 24 * time.Hour)
	if _, err := pages.Open(of, token); !apierrors.IsResourceExpired(err) {
		t.Errorf("after a year: %v, want 410", err)
	}
}
