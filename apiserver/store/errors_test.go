package store

import (
	"strings"
	"testing"
)

// TestClaimErrorHasNoValues shows that the text of a ClaimError has no values of records.
func TestClaimErrorHasNoValues(t *testing.T) {
	for line, want := range map[string]string{
		"If-None-Exist Patient?identifier=urn:chip|985": "If-None-Exist",
		"Idempotency-Key 7 of 9":                        "Idempotency-Key",
		"slot/8b1c":                                     "slot/8b1c",
	} {
		err := &ClaimError{Claim: Claim{Line: line}, Holder: Key{Type: "Patient", ID: "1"}}
		if got := err.Error(); got != want+" is claimed by Patient/1" {
			t.Errorf("%q: got %q, want %q", line, got, want+" is claimed by Patient/1")
		}
		if strings.Contains(err.Error(), "985") {
			t.Errorf("%q: got %q, want no value of the line", line, err)
		}
	}
}
