package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// stored returns a resource as it is stored.
func stored(t *testing.T, text string) store.Body {
	t.Helper()
	read, err := r4.Read([]byte(text), r4.Options{Type: "Patient"})
	if err != nil {
		t.Fatal(err)
	}
	return store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset}
}

func TestCheckBody(t *testing.T) {
	rex := store.Key{Type: "Patient", ID: "Rex"}
	plain := stored(t, `{"resourceType":"Patient","id":"Rex"}`)
	tagged := stored(t, `{"resourceType":"Patient", "meta" : {"versionId":"7","tag":[{"code":"a"}] } ,"id":"Rex","active":true}`)
	invalid := plain
	invalid.JSON = []byte(`{"resourceType":"Patient","id":"","meta":{},"active":"yes"}`)
	moved := func(body store.Body, id, meta int) store.Body {
		body.IDOffset, body.MetaOffset = body.IDOffset+id, body.MetaOffset+meta
		return body
	}
	for name, test := range map[string]struct {
		key  store.Key
		body store.Body
		want []string
	}{
		"without meta":           {rex, plain, nil},
		"with meta":              {rex, tagged, nil},
		"invalid element":        {rex, invalid, []string{"wrong_json_kind Patient.active"}},
		"no valid id":            {store.Key{Type: "Patient", ID: `R"ex`}, plain, []string{"not_stored_form Patient"}},
		"no offsets":             {rex, store.Body{JSON: plain.JSON}, []string{"not_stored_form Patient"}},
		"offset beyond the body": {rex, moved(plain, 1000, 0), []string{"not_stored_form Patient"}},
		"slot without content":   {store.Key{Type: "AvailabilitySlot", ID: "x"}, store.Body{JSON: []byte(`{`)}, []string{"invalid_body body"}},
		"deleted":                {rex, store.Body{}, nil},
		"deleted, no valid id":   {store.Key{Type: "Patient", ID: `R"ex`}, store.Body{}, []string{"not_stored_form Patient.id"}},
		"deleted slot":           {store.Key{Type: "AvailabilitySlot", ID: "x"}, store.Body{}, nil},
		"deleted event":          {store.Key{Type: "Event", ID: "x"}, store.Body{}, nil},
		"deleted, unknown type":  {store.Key{Type: "Observation", ID: "x"}, store.Body{}, []string{"invalid_body body"}},
		"unknown type":           {store.Key{Type: "Observation", ID: "x"}, store.Body{JSON: []byte(`{}`)}, []string{"invalid_body body"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range checkBody(test.key, test.body) {
				got = append(got, p.Code+" "+p.Expression)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	for _, body := range []store.Body{moved(plain, -5, 0), moved(plain, 0, -3), moved(tagged, 0, 1), moved(tagged, 2, 0)} {
		if len(checkBody(rex, body)) == 0 {
			t.Errorf("offsets %d and %d of %s are accepted", body.IDOffset, body.MetaOffset, body.JSON)
		}
	}
}
