package suggest

import (
	"strings"
	"testing"
)

func TestAmong(t *testing.T) {
	known := []string{"family", "given", "birthdate", "$everything"}
	tests := map[string]string{
		"famly":                   "; did you mean family?",
		"Given":                   "; did you mean given?",
		"birth-date":              "; did you mean birthdate?",
		"$evrything":              "; did you mean $everything?",
		"x":                       "; known are family, given, birthdate, $everything",
		"":                        "; known are family, given, birthdate, $everything",
		"status":                  "; known are family, given, birthdate, $everything",
		strings.Repeat("a", 1000): "; known are family, given, birthdate, $everything",
	}
	for unknown, want := range tests {
		if got := Among(unknown, known, "known are"); got != want {
			t.Errorf("%.20q: got %s, want %s", unknown, got, want)
		}
	}
}
