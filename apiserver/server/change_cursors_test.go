package server

import (
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// TestChangeCursors tests the errors of cursors, which follow the words "the cursor" in messages.
func TestChangeCursors(t *testing.T) {
	tokens, err := search.NewTokens(func() [][]byte { return [][]byte{make([]byte, search.TokenKeySize)} })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cursors := &changeCursors{tokens: tokens, now: func() time.Time { return now }}
	of := ahds.CursorScope{SiteID: "oak", Collection: "availability-slot/changes", Caller: "ann", View: "v"}
	token := cursors.Seal(of, []byte("there"))
	if at, err := cursors.Open(of, token); err != nil || string(at) != "there" {
		t.Fatalf("Open = %q, %v, want the sealed text", at, err)
	}
	const foreign = "was not made by this server for this site, list and caller; send meta.next of the last list unchanged, or the time of your last poll, less a minute"
	for name, change := range map[string]func(*ahds.CursorScope){
		"of another site":   func(s *ahds.CursorScope) { s.SiteID = "elm" },
		"of another list":   func(s *ahds.CursorScope) { s.Collection = "webhook/changes" },
		"of another caller": func(s *ahds.CursorScope) { s.Caller = "bo" },
		"of another view":   func(s *ahds.CursorScope) { s.View = "" },
	} {
		other := of
		change(&other)
		if _, err := cursors.Open(other, token); err == nil || err.Error() != foreign {
			t.Errorf("%s: got %v, want %s", name, err, foreign)
		}
	}
	if _, err := cursors.Open(of, "zz"); err == nil || err.Error() != foreign {
		t.Errorf("no cursor: got %v, want %s", err, foreign)
	}
	now = now.Add(365 * 24 * time.Hour)
	const expired = "has expired; send the time of your last poll, less a minute"
	if _, err := cursors.Open(of, token); err == nil || err.Error() != expired {
		t.Errorf("after a year: got %v, want %s", err, expired)
	}
}
