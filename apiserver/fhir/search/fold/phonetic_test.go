package fold

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPhonetic(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "猫": nil, "12": nil, "Smith": {"SM0", "XMT"}, "SCHMIDT": {"XMT", "SMT"}, "Bella": {"PL"}, "Zoë": {"S"},
		"O'Brien": {"APRN"}, "Anna-Maria  Anna": {"AN", "MR"}, "Jose": {"HS"}, "Łukasz": {"AKS", "AKX"},
		"Filipowicz": {"FLPT", "FLPF"}, "Xavier": {"SF", "SFR"},
	} {
		if diff := cmp.Diff(want, Phonetic(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// FuzzPhonetic shows that the codes of any text have at most codeLength letters.
func FuzzPhonetic(f *testing.F) {
	for _, word := range []string{"Bacher", "Knight", "Wright", "Tagliaro", "McHugh", "Czerny", "Schwarz", "Xavier", "Bertucci", "JJ", "GH", "ß"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, code := range Phonetic(text) {
			if code == "" || len(code) > codeLength {
				t.Errorf("%q has the code %q", text, code)
			}
		}
	})
}
