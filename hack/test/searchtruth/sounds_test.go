package searchtruth

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// chunks are letters that Double Metaphone has rules for, and others.
var chunks = strings.Fields(`a e i o u y b bb c cc cia cio ce ci ch chae chia chem czy cz d dg dge dt e ei ewski f g gh gn gli ger ges gy
	h i illo illa alle isl j jose k ck l ll m mm mb umb umber n p ph pp pb q r rr ier s sh sheim ss sc sch schoo scher sci sio sia sugar
	t tt th tth thom tion tia tch tz v w wr wh wicz witz owsky x eau au oux z zz zo zi zh mc mac caesar bacher orchid ucces danger ranger`)

// deviates are the words for which double-metaphone is not what Philips published: it
// leaves out CIA, JJ and the second C of McC, and misreads ACH at the start, RGY, OGY
// and IER.
var deviates = regexp.MustCompile(`(^|[^c])cia|cccia|jj|[ro]gy|ier$|^mcc|^ach`)

// TestSounds compares how words sound with another implementation of Double Metaphone.
func TestSounds(t *testing.T) {
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	truth, err := New(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(`Smith Schmidt Bella Thompson Jose Xavier Wright Knight Tagliaro McHugh Czerny Bertucci Filipowicz Arnow Cabrillo
		Michael Chianti Character Chore Bach Bacher Laugh Hugh Ghislane Biaggi Edgar Edge Island Carlisle Rogier Artois Breaux Zhao Pizza Caesar`)
	for range 8000 {
		word := ""
		for range 1 + random.IntN(4) {
			word += chunks[random.IntN(len(chunks))]
		}
		if !deviates.MatchString(word) {
			words = append(words, word)
		}
	}
	bodies := make([][]byte, len(words))
	for i, word := range words {
		bodies[i], err = json.Marshal(map[string]any{"resourceType": "Practitioner", "name": []any{map[string]any{"family": word}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := truth.Entries(t.Context(), bodies)
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range words {
		want := []string{}
		for _, entry := range entries[i] {
			if text, ok := entry.Value.(store.Text); ok && entry.Param == "phonetic" {
				want = append(want, text.Folded)
			}
		}
		slices.Sort(want)
		got := append([]string{}, fold.Phonetic(word)...)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
}
