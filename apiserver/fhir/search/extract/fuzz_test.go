package extract

import (
	"path/filepath"
	"testing"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// FuzzValues shows that no body makes the extraction panic, and that the values have the form on
// which engines rely.
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
