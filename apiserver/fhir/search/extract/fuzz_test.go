package extract

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// FuzzValues shows that no body makes the extraction panic, that the values have the form on which
// engines rely, and that a client's body and the stored form of it have the same values.
func FuzzValues(f *testing.F) {
	path, err := examples.Fetch(f.Context(), filepath.Join("..", "..", "..", "..", "bin"))
	if err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, typ := range r4.Types {
		names = append(names, typ.Name)
	}
	found, err := examples.Load(path, names...)
	if err != nil {
		f.Fatal(err)
	}
	for _, example := range found {
		if len(example.JSON) < 3000 {
			f.Add(example.Type, example.JSON)
		}
	}
	f.Add("Group", []byte(`{"resourceType":"Group","characteristic":[{"code":{"coding":[{"code":"a"}]},"valueBoolean":true}]}`))
	f.Add("Patient", []byte(`{"resourceType":"Patient","meta":{"versionId":"7","tag":[{"code":"a"}],"lastUpdated":"2026-11-30T12:00:00Z","security":[{"code":"R"}],"source":"https://a.example"},"id":"b","link":[{"type":"seealso","other":{"reference":"Patient/c"}}]}`))
	f.Add("Patient", []byte(`{"id":{"a":["b"]},"resourceType":"Patient","meta":{"lastUpdated":"2026-11-30T12:00:00Z","_lastUpdated":{"extension":[{"url":"u","valueReference":{"reference":"Patient/c"}}]}}}`))
	f.Fuzz(func(t *testing.T, typ string, body []byte) {
		values := Values(typ, body)
		seen := map[store.IndexValue]bool{}
		for _, entry := range values {
			if seen[entry] {
				t.Errorf("twice: %+v", entry)
			}
			seen[entry] = true
			check(t, entry)
		}
		for _, ignoreID := range []bool{false, true} {
			if sent, err := r4.Read(body, r4.Options{Type: typ, Index: true, IgnoreID: ignoreID}); err == nil {
				if diff := cmp.Diff(Values(typ, sent.Body), ValuesOf(body, sent.Index)); diff != "" {
					t.Errorf("the stored form has other values (-stored +sent):\n%s", diff)
				}
			}
		}
	})
}

func check(t *testing.T, entry store.IndexValue) {
	ok := entry.Param != ""
	switch value := entry.Value.(type) {
	case store.Token:
		ok = ok && value != (store.Token{})
	case store.Text:
		ok = ok && value.Folded != "" && value.Original != ""
	case store.Reference:
		ok = ok && (value.Type == "") == (value.ID == "") && value != (store.Reference{})
	case store.Mention:
		ok = entry.Param == "" && value.Type != "" && value.ID != ""
	case store.Period:
		ok = ok && value.From < value.Until
	case store.Point:
		ok = ok && -90 <= value.Latitude && value.Latitude <= 90 && -180 <= value.Longitude && value.Longitude <= 180
	}
	if !ok {
		t.Errorf("unfit for an engine: %+v", entry)
	}
}
