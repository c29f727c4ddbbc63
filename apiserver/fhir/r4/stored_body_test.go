package r4

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var updated = time.Date(2026, 3, 1, 12, 30, 15, 7_000_000, time.FixedZone("", 3600))

func TestAppendJSON(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"inserted": {
			`{"resourceType":"Patient"}`,
			`{"resourceType":"Patient","id":"b","meta":{"versionId":"12","lastUpdated":"2026-03-01T11:30:15.007Z"}}`,
		},
		"replaced in place": {
			`{"meta":{"versionId":"1","source":"#s"}, "id":"A", "resourceType":"Patient"}`,
			`{"meta":{"versionId":"12","lastUpdated":"2026-03-01T11:30:15.007Z","source":"#s"}, "id":"b", "resourceType":"Patient"}`,
		},
		"white space in meta": {
			`{"resourceType":"Patient","id":"A","meta":{ "versionId":"9" }}`,
			`{"resourceType":"Patient","id":"b","meta":{"versionId":"12","lastUpdated":"2026-03-01T11:30:15.007Z"  }}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := Read([]byte(test.body), Options{Type: "Patient"})
			if err != nil {
				t.Fatal(err)
			}
			got := AppendJSON([]byte("x"), res.Body, res.IDOffset, res.MetaOffset, "b", 12, updated)
			if diff := cmp.Diff("x"+test.want, string(got)); diff != "" {
				t.Error(diff)
			}
			text, version, at := AppendGaps([]byte("x"), res.Body, res.IDOffset, res.MetaOffset, "b")
			filled := string(text[:version]) + "12" + string(text[version:at]) + string(AppendInstant(nil, updated)) + string(text[at:])
			if diff := cmp.Diff("x"+test.want, filled); diff != "" {
				t.Errorf("with its gaps filled: %s", diff)
			}
		})
	}
}

// TestRoundTrip reads random resources, written in random ways, and compares what
// comes back token by token.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		checkRoundTrip(t, "Patient", randomResource(random))
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"resourceType":"Patient"}`,
		`{"meta":{ "versionId":"1" , "x":[{}],"lastUpdated":2 } ,"id":"a.B-9","resourceType":"Patient"}`,
		`{"resourceType":"Patient","\u0069d":"\u0041","met\u0061":{"versio\u006eId":null}}`,
		`{"resourceType":"Patient","a":1,"a":[{"b":1,"b":2}],"id":7,"meta":[]}`,
		"{\"resourceType\":\"Patient\",\"x\":[[[[[[\"\\ud800\xff",
		`{"resourceType":"Patient"}{}`,
		`null`,
	} {
		f.Add([]byte(seed))
	}
	for _, name := range []string{"patient-1k.json", "patient-2.5k.json"} {
		f.Add(readTestdata(f, name))
	}
	for _, r := range loadRejects(f) {
		f.Add([]byte(r.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkRoundTrip(t, "Patient", body) })
}

// FuzzReadAny reads bodies as resources of any type.
func FuzzReadAny(f *testing.F) {
	for i, typ := range Types {
		for n := range 3 {
			body := newGenerator(uint64(n)).generate(typ.Name)
			f.Add(uint16(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, n uint16, body []byte) {
		typ := firstResource + typeIndex(n)%(numTypes-firstResource)
		checkRoundTrip(t, types[typ].name, body)
	})
}

// checkRoundTrip reads a body and, when it is taken, checks that what is answered
// differs in id, versionId and lastUpdated alone.
func checkRoundTrip(t *testing.T, typ string, body []byte) {
	t.Helper()
	sent := bytes.Clone(body)
	res, err := Read(body, Options{Type: typ})
	if !bytes.Equal(sent, body) {
		t.Fatal("reading changed the body")
	}
	if err != nil {
		issues, ok := err.(Errors) //nolint:errorlint // the exact type is promised
		if !ok || len(issues) == 0 || len(issues) > maxIssues || len(err.Error()) > maxIssues*1000 {
			t.Fatalf("error %T with %d issues", err, len(issues))
		}
		return
	}
	answer := AppendJSON(nil, res.Body, res.IDOffset, res.MetaOffset, "the-id", 7, updated)
	if !jsontext.Value(answer).IsValid() {
		t.Fatalf("not JSON: %s\nfrom: %s", answer, body)
	}
	wantTokens, gotTokens := resourceTokens(t, body), resourceTokens(t, answer)
	if diff := cmp.Diff(wantTokens.others, gotTokens.others); diff != "" {
		t.Fatalf("%s\nfrom: %s\nto: %s", diff, body, answer)
	}
	want := map[string]string{"id": "the-id", "versionId": "7", "lastUpdated": "2026-03-01T11:30:15.007Z"}
	if diff := cmp.Diff(want, gotTokens.spliced); diff != "" {
		t.Fatalf("%s\nfrom: %s\nto: %s", diff, body, answer)
	}
	if sentID := wantTokens.spliced["id"]; sentID != res.ID {
		t.Fatalf("the id %q was read as %q", sentID, res.ID)
	}
	again, err := Read(answer, Options{Type: typ})
	if err != nil || again.ID != "the-id" {
		t.Fatalf("reading the answer again: id %q, %v", again.ID, err)
	}
	if !bytes.Equal(again.Body, res.Body) || again.IDOffset != res.IDOffset || again.MetaOffset != res.MetaOffset {
		t.Fatalf("an answer sent back is stored as %s\ninstead of %s", again.Body, res.Body)
	}
}

type tokens struct {
	// others are the raw tokens, but for the members that the server sets.
	others []string
	// spliced are those members' values.
	spliced map[string]string
}

// resourceTokens takes a resource apart with nothing of the reader's.
func resourceTokens(t *testing.T, body []byte) tokens {
	t.Helper()
	found := tokens{spliced: map[string]string{}}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if err == io.EOF { //nolint:errorlint // the decoder returns it bare
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		depth := d.StackDepth()
		if token.Kind() != '"' {
			found.add(d, depth, string(token.Kind())+token.String())
			continue
		}
		pointer := d.StackPointer()
		_, length := d.StackIndex(depth)
		switch name := token.String(); {
		case length%2 == 1 && pointer == "/id",
			length%2 == 1 && depth == 2 && (pointer == "/meta/versionId" || pointer == "/meta/lastUpdated"):
			value, err := d.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			var text string
			if json.Unmarshal(value, &text) == nil {
				found.spliced[name] = text
			}
		default:
			found.add(d, depth, `"`+name)
		}
	}
}

// add notes a token, but not a meta that is empty without the spliced members:
// the server adds one where there is none.
func (f *tokens) add(d *jsontext.Decoder, depth int, token string) {
	f.others = append(f.others, token)
	empty := []string{`"meta`, "{{", "}}"}
	if n := len(f.others) - 3; depth == 1 && n >= 0 && d.StackPointer() == "/meta" && cmp.Equal(f.others[n:], empty) {
		f.others = f.others[:n]
	}
}

// randomResource writes a Patient with members in random order, random white
// space and random escapes.
func randomResource(random *rand.Rand) []byte {
	space := func() string { return strings.Repeat(" ", random.IntN(2)) + strings.Repeat("\n\t", random.IntN(2)) }
	quoted := func(s string) string {
		if random.IntN(4) == 0 {
			at := random.IntN(len(s))
			return fmt.Sprintf(`"%s\u%04x%s"`, s[:at], s[at], s[at+1:])
		}
		return `"` + s + `"`
	}
	object := func(members map[string]string) string {
		var names []string
		for name := range members {
			names = append(names, name)
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var parts []string
		for _, name := range names {
			parts = append(parts, space()+quoted(name)+space()+":"+space()+members[name]+space())
		}
		return "{" + space() + strings.Join(parts, ",") + "}"
	}
	some := func(members map[string]string) map[string]string {
		for name := range members {
			if random.IntN(2) == 0 {
				delete(members, name)
			}
		}
		return members
	}
	meta := object(some(map[string]string{
		"versionId": `"3"`, "lastUpdated": `"2020-01-01T00:00:00Z"`, "source": quoted("urn:x"), "tag": `[{"code":"a"}]`,
	}))
	members := some(map[string]string{
		"id": quoted("Abc.1"), "meta": meta, "name": `[{"id":"x","text":"Zoë"}]`, "n": "1.50e400", "active": "true",
	})
	members["resourceType"] = quoted("Patient")
	return []byte(space() + object(members) + space())
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}
