package jsonpatch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzPatch applies any patch to any document. The result is valid JSON within the limit or one of
// the documented errors, and undoing an added element restores every byte.
func FuzzPatch(f *testing.F) {
	for _, file := range []string{"tests.json", "spec_tests.json"} {
		content, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		var cases []struct{ Doc, Patch json.RawMessage }
		if err := json.Unmarshal(content, &cases); err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			f.Add(string(c.Doc), string(c.Patch))
		}
	}
	f.Fuzz(func(t *testing.T, document, text string) {
		const most = 1 << 14
		patch, err := Parse([]byte(text))
		if err != nil || !jsontext.Value(document).IsValid() || len(document) > most {
			return
		}
		before := strings.Clone(document)
		patched, err := patch.Apply([]byte(document), most)
		if document != before {
			t.Fatal("the document was changed")
		}
		if err != nil {
			return
		}
		if len(patched) > most+len(document) {
			t.Fatalf("%d bytes", len(patched))
		}
		if !jsontext.Value(patched).IsValid() {
			t.Fatalf("not valid: %s", patched)
		}
		again, err := patch.Apply([]byte(document), most)
		if err != nil || string(again) != string(patched) {
			t.Fatalf("applied again: %s, %v", again, err)
		}
		if jsontext.Value(patched).Kind() == jsontext.KindBeginObject && !strings.Contains(string(patched), "added") {
			undo, err := Parse([]byte(`[{"op":"add","path":"/\u0001added","value":[1]},{"op":"remove","path":"/\u0001added"}]`))
			if err != nil {
				t.Fatal(err)
			}
			restored, err := undo.Apply(patched, 2*most+len(document))
			if err != nil || string(restored) != string(patched) {
				t.Fatalf("added and removed: %q of %q, %v", restored, patched, err)
			}
		}
	})
}
