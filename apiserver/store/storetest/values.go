package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// values are the searchable values in a body of this suite, by parameter.
type values struct {
	Tokens  map[string][]store.Token
	Pairs   map[string][]store.Pair
	Texts   map[string][]store.Text
	Refs    map[string][]store.Reference
	Periods map[string][]store.Period
	Points  map[string][]store.Point
	// Mentions have no parameter.
	Mentions []store.Mention
	// Bare are the parameters with an IndexValue whose Value is nil.
	Bare []string
	// Salt makes bodies differ.
	Salt int
}

// Extractor is the store.Extractor of the bodies of this suite.
type Extractor struct {
	// Facets are the parameters that are facets.
	Facets []string
	// Common are the common codes of all types.
	Common []store.CommonCode
	// PartsOf maps a parameter to its parts (store.Extractor.Parts).
	PartsOf map[string][]string
}

// Version implements store.Extractor.
func (Extractor) Version() int64 { return 1 }

// IsFacet implements store.Extractor.
func (x Extractor) IsFacet(param string) bool { return slices.Contains(x.Facets, param) }

// CommonCodes implements store.Extractor.
func (x Extractor) CommonCodes(string) []store.CommonCode { return x.Common }

// Ordinal implements store.Extractor. Some parameters of the suite have a number, others have none.
func (Extractor) Ordinal(_, param string) int {
	return slices.Index([]string{"code", "name", "owner", "nothing"}, param)
}

// Parts implements store.Extractor.
func (x Extractor) Parts(_, param string) []string { return x.PartsOf[param] }

// Fold implements store.Extractor.
func (Extractor) Fold(original string) string {
	return strings.ReplaceAll(strings.ToLower(original), "é", "e")
}

// References implements store.Extractor.
func (x Extractor) References(recordType string, body []byte) []store.IndexValue {
	return slices.DeleteFunc(x.Extract(recordType, body), func(entry store.IndexValue) bool {
		_, is := entry.Value.(store.Reference)
		return !is
	})
}

// Extract implements store.Extractor.
func (Extractor) Extract(_ string, body []byte) []store.IndexValue {
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
		entries = append(entries, store.IndexValue{Value: mention})
	}
	for _, param := range content.Bare {
		entries = append(entries, store.IndexValue{Param: param})
	}
	return entries
}

// labelParam and linkParam are the parameters whose values are also labels and links.
const (
	labelParam = "code"
	linkParam  = "owner"
)

// Labels implements store.Extractor.
func (Extractor) Labels(_ string, entries []store.IndexValue) store.Labels {
	var labels store.Labels
	for _, entry := range entries {
		switch value := entry.Value.(type) {
		case store.Token:
			if entry.Param == labelParam {
				labels.Names = append(labels.Names, value.Code)
			}
		case store.Reference:
			if entry.Param == linkParam {
				labels.Links = append(labels.Links, store.Link{Param: linkParam, To: value})
			}
		}
	}
	return labels
}

func collect[V store.Value](entries []store.IndexValue, found map[string][]V) []store.IndexValue {
	for param, all := range found {
		for _, value := range all {
			entries = append(entries, store.IndexValue{Param: param, Value: value})
		}
	}
	return entries
}

// body returns the values as JSON text.
func (v values) body(t *testing.T) store.Body {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return store.Body{JSON: encoded}
}

// otherBase is a base URL of another server, and ownBase one of this site.
const (
	otherBase = "https://elsewhere.example/fhir"
	ownBase   = "https://here.example/fhir"
)

// single is a parameter with at most one period per record.
const single = "single"

// recordTypes are the types of random records.
var recordTypes = []string{"Patient", "Person", "Group"}

// dice makes random values from few alternatives, so that records share values.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) token() store.Token {
	return store.Token{System: pick(d, "", "s1", "s2"), Code: pick(d, "a", "b", "c", "d")}
}

// facet is a parameter whose codes have one system. CommonCodes are two of its three codes.
const facet = "gender"

func gender(code string) store.Token { return store.Token{System: "genders", Code: code} }

// CommonCodes are codes of the random records that may be common codes.
var CommonCodes = []store.CommonCode{{Param: facet, Token: gender("female")}, {Param: facet, Token: gender("male")}}

// union is a parameter whose tokens with the system part are also those of the parameter part.
const union, part = "telecom", "phone"

// TokenParts are the parts of the parameters of the random records.
var TokenParts = map[string][]string{union: {part}}

func (d dice) contact() store.Token {
	return store.Token{System: pick(d, part, "email"), Code: pick(d, "1", "2", "3")}
}

func (d dice) gender() store.Token { return gender(pick(d, "female", "male", "other")) }

func (d dice) text() store.Text {
	original := pick(d, "Ann", "ann", "Anna", "Bob", "bo", "Zoé", "x%y", "x_y", "é")
	return store.Text{Folded: Extractor{}.Fold(original), Original: original}
}

func (d dice) id() string { return fmt.Sprintf("r%d", d.IntN(25)) }

func (d dice) reference() store.Reference {
	r := store.Reference{Type: pick(d, recordTypes...), ID: d.id()}
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

// values returns random values of one record.
func (d dice) values() values {
	v := values{Salt: d.IntN(1 << 30)}
	v.Tokens = several(d, d.token, "code", "identifier")
	for range d.IntN(3) {
		contact := d.contact()
		v.Tokens[union] = append(v.Tokens[union], contact)
		if contact.System == part {
			v.Tokens[part] = append(v.Tokens[part], contact)
		}
	}
	if d.IntN(4) > 0 {
		v.Tokens[facet] = []store.Token{d.gender()}
	}
	v.Pairs = several(d, func() store.Pair { return store.Pair{First: d.token(), Second: d.token()} }, "pair")
	v.Texts = several(d, d.text, "name", "city")
	v.Refs = several(d, d.reference, "partof", "owner")
	v.Periods = several(d, d.period, "date", "birthdate")
	if d.IntN(4) > 0 {
		v.Periods[single] = []store.Period{d.period()}
	}
	v.Points = several(d, d.point, "near")
	for range d.IntN(3) {
		v.Mentions = append(v.Mentions, store.Mention{Base: pick(d, "", ownBase), Type: pick(d, recordTypes...), ID: d.id()})
	}
	if d.IntN(4) == 0 {
		v.Bare = []string{pick(d, "code", "name", "owner", "date")}
	}
	return v
}

// several returns 0 to 2 values for each of the parameters.
func several[V any](d dice, value func() V, params ...string) map[string][]V {
	made := map[string][]V{}
	for _, param := range params {
		for range d.IntN(3) {
			made[param] = append(made[param], value())
		}
	}
	return made
}
