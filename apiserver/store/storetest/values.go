package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// values are what the bodies of this suite say of themselves: by parameter.
type values struct {
	Tokens  map[string][]store.Token
	Pairs   map[string][]store.Pair
	Texts   map[string][]store.Text
	Refs    map[string][]store.Reference
	Periods map[string][]store.Period
	Points  map[string][]store.Point
	// Mentions are by no parameter.
	Mentions []store.Mention
	// Bare are parameters that are there with nothing to compare.
	Bare []string
	// Salt makes bodies differ.
	Salt int
}

// Extract finds the values of the bodies that this suite writes.
func Extract(_ string, body []byte) []store.Entry {
	var content values
	if json.Unmarshal(body, &content) != nil {
		return nil
	}
	entries := collect(nil, content.Tokens)
	entries = collect(entries, content.Pairs)
	entries = collect(entries, content.Texts)
	entries = collect(entries, content.Refs)
	entries = collect(entries, content.Periods)
	entries = collect(entries, content.Points)
	for _, mention := range content.Mentions {
		entries = append(entries, store.Entry{Value: mention})
	}
	for _, param := range content.Bare {
		entries = append(entries, store.Entry{Param: param})
	}
	return entries
}

func collect[V store.Value](entries []store.Entry, found map[string][]V) []store.Entry {
	for param, all := range found {
		for _, value := range all {
			entries = append(entries, store.Entry{Param: param, Value: value})
		}
	}
	return entries
}

// body is the JSON text of values.
func (v values) body(t *testing.T) store.Body {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return store.Body{JSON: encoded}
}

// otherBase is an address that is not the site's, and ownBase one that is.
const (
	otherBase = "https://elsewhere.example/fhir"
	ownBase   = "https://here.example/fhir"
)

// single is a parameter of which records have at most one value, a period.
const single = "single"

// world are the types that random records have.
var world = []string{"Patient", "Person", "Group"}

// dice makes random values, few enough that they collide.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) token() store.Token {
	return store.Token{System: pick(d, "", "s1", "s2"), Code: pick(d, "a", "b", "c", "d")}
}

func (d dice) text() store.Text {
	original := pick(d, "Ann", "ann", "Anna", "Bob", "bo", "Zoé", "x%y", "x_y", "é")
	folded := map[string]string{"Ann": "ann", "Anna": "anna", "Bob": "bob", "Zoé": "zoe", "é": "e"}[original]
	if folded == "" {
		folded = original
	}
	return store.Text{Folded: folded, Original: original}
}

func (d dice) id() string { return fmt.Sprintf("r%d", d.IntN(25)) }

func (d dice) reference() store.Reference {
	r := store.Reference{Type: pick(d, world...), ID: d.id()}
	switch d.IntN(8) {
	case 0:
		r.Base = otherBase
	case 1:
		r.Base = ownBase
	case 2:
		return store.Reference{Base: "urn:uuid:" + d.id()}
	}
	return r
}

func (d dice) time() int64 { return int64(d.IntN(10)) * 1000 }

func (d dice) period() store.Period {
	from := d.time()
	p := store.Period{From: from, Until: from + 1 + int64(d.IntN(3))*1000}
	switch d.IntN(6) {
	case 0:
		p.From = store.TheBeginning
	case 1:
		p.Until = store.TheEnd
	}
	return p
}

func (d dice) point() store.Point {
	return store.Point{Latitude: float64(d.IntN(5)), Longitude: float64(d.IntN(5))}
}

// values are those of one record.
func (d dice) values() values {
	v := values{Salt: d.IntN(1 << 30)}
	v.Tokens = several(d, d.token, "code", "identifier")
	v.Pairs = several(d, func() store.Pair { return store.Pair{First: d.token(), Second: d.token()} }, "pair")
	v.Texts = several(d, d.text, "name", "city")
	v.Refs = several(d, d.reference, "partof", "owner")
	v.Periods = several(d, d.period, "date", "birthdate")
	if d.IntN(4) > 0 {
		v.Periods[single] = []store.Period{d.period()}
	}
	v.Points = several(d, d.point, "near")
	for range d.IntN(3) {
		v.Mentions = append(v.Mentions, store.Mention{Base: pick(d, "", ownBase), Type: pick(d, world...), ID: d.id()})
	}
	if d.IntN(4) == 0 {
		v.Bare = []string{pick(d, "code", "name", "owner", "date")}
	}
	return v
}

// several makes none to two values for each of the parameters.
func several[V any](d dice, value func() V, params ...string) map[string][]V {
	made := map[string][]V{}
	for _, param := range params {
		for range d.IntN(3) {
			made[param] = append(made[param], value())
		}
	}
	return made
}
