package fhir

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// structure is the part of a StructureDefinition that says which elements are links.
type structure struct {
	Name, Derivation string
	Snapshot         struct {
		Element []struct {
			Path string
			Type []struct{ Code string }
		}
	}
}

// TestLinkElements compares linkElements with HL7's definitions of the supported types and of all
// datatypes that they use.
func TestLinkElements(t *testing.T) {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	structures := map[string]structure{}
	err = examples.Walk(path, func(name string, text []byte) error {
		var s structure
		if !strings.HasPrefix(name, "StructureDefinition-") {
			return nil
		}
		err := json.Unmarshal(text, &s)
		if s.Derivation != "constraint" {
			structures[s.Name] = s
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{"reference": true} // of Reference it is a string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, element := range structures[name].Snapshot.Element {
			last := element.Path[strings.LastIndex(element.Path, ".")+1:]
			for _, kind := range element.Type {
				if slices.Contains([]string{"uri", "url", "oid", "uuid"}, kind.Code) {
					defined[strings.ReplaceAll(last, "[x]", strings.ToUpper(kind.Code[:1])+kind.Code[1:])] = true
				}
				visit(kind.Code)
			}
		}
	}
	for _, kind := range r4.Types {
		visit(kind.Name)
	}
	delete(defined, "type") // Reference.type names a resource type
	var want []string
	for name := range defined {
		want = append(want, name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, linkElements); diff != "" {
		t.Error(diff)
	}
}

func TestVisitStrings(t *testing.T) {
	const text = ` {"a":"1","b":["2",{"c":"3"},"4",["5"]],"d":{"e":{"f":"6"},"g":"7"},"h":8,"\u0069":"9\n"} `
	var got []string
	err := visitStrings([]byte(text), func(name string, raw jsontext.Value, at int) error {
		if string(raw) != text[at:at+len(raw)] {
			t.Errorf("%s is not at %d", raw, at)
		}
		got = append(got, name+string(raw))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`a"1"`, `b"2"`, `c"3"`, `b"4"`, `b"5"`, `f"6"`, `g"7"`, `i"9\n"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResolveLink(t *testing.T) {
	const uuid = "urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a"
	l := &linkResolver{targets: map[string]string{
		uuid: "Patient/new", "http://e.example/fhir/Patient/1": "Patient/other",
	}}
	for name, test := range map[string]struct{ fullURL, link, want string }{
		"by fullUrl":                 {"", uuid, "Patient/new"},
		"an absolute one":            {"", "http://e.example/fhir/Patient/1", "Patient/other"},
		"a relative one":             {"http://e.example/fhir/Person/2", "Patient/1", "Patient/other"},
		"a relative one, elsewhere":  {"http://f.example/fhir/Person/2", "Patient/1", "Patient/1"},
		"a relative one of a uuid":   {uuid, "Patient/1", "Patient/1"},
		"what is not in the bundle":  {"http://e.example/fhir/Person/2", "Patient/3", "Patient/3"},
		"another uuid":               {"", strings.ToUpper(uuid), strings.ToUpper(uuid)},
		"what is contained":          {"http://e.example/fhir/Person/2", "#1", "#1"},
		"a search URI, left to hide": {"", "Patient?identifier=1", "Patient?identifier=1"},
	} {
		w := &entryWrite{bundleEntry: &bundleEntry{entryRequest: &entryRequest{fullURL: test.fullURL}}}
		got, err := l.resolveLink(w, test.link, true)
		if err != nil || got != test.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	markup := `<div><a href="` + uuid + `">x</a><img alt="` + uuid + `" src='` + uuid + `'/> ` + uuid + `<a href = "#a">y</a></div>`
	want := `<div><a href="Patient/new">x</a><img alt="` + uuid + `" src="Patient/new"/> ` + uuid + `<a href = "#a">y</a></div>`
	if got := l.resolveMarkup(&entryWrite{bundleEntry: &bundleEntry{entryRequest: &entryRequest{}}}, markup); got != want {
		t.Errorf("got %s", got)
	}
}

func TestConditionalReferences(t *testing.T) {
	c := conditionalReferences{}
	const sent = `{"patient":{"reference" : "Patient?identifier=a|b"},"display":"Patient?x=y","link":[{"reference":"Patient/1"}]}`
	got, err := c.replaceSearchURIs([]byte(sent))
	if err != nil || len(c) != 1 {
		t.Fatalf("%v, %v", c, err)
	}
	for reference, uri := range c {
		if uri != "Patient?identifier=a|b" || string(got) != strings.Replace(sent, uri, reference, 1) {
			t.Errorf("%s: %s", uri, got)
		}
	}
	if got, err := c.replaceSearchURIs(nil); got != nil || err != nil {
		t.Errorf("of no resource: %s, %v", got, err)
	}
}

// TestAddSize shows that above maxResponseSize a write is answered without the record and a read
// with an error.
func TestAddSize(t *testing.T) {
	h := facadeWithoutStorage(t)
	answered := func(what interaction) *bundleEntry {
		e := &bundleEntry{interaction: what, request: &request{Request: httptest.NewRequest(http.MethodGet, "/", nil), dialect: fhirDialect}}
		e.reset()
		e.response.status, e.response.body = 200, make([]byte, 100)
		return e
	}
	read, write, purge := interaction{run: h.read}, interaction{plan: h.create}, interaction{verb: verbPurge, run: h.purge}
	fits, large := maxResponseSize-100, maxResponseSize-99
	if e := answered(read); e.addSize(h, fits) != maxResponseSize || e.response.status != 200 {
		t.Errorf("what fits: %+v", e.response)
	}
	for name, what := range map[string]interaction{"written": write, "purged": purge} {
		if e := answered(what); e.addSize(h, large) != large || e.response.status != 200 || len(e.response.body) > 0 {
			t.Errorf("what was %s: %+v", name, e.response)
		}
	}
	if e := answered(read); e.addSize(h, large) <= large || e.response.status != 422 || !e.request.isOutcome {
		t.Errorf("what was read: %+v", e.response)
	}
}

// TestTransactionReads checks the memory that the responses to the reads of a transaction that fails
// take: as much as a Bundle may have, and nothing if there are writes.
func TestTransactionReads(t *testing.T) {
	h := facadeWithoutStorage(t)
	const many, size = 12, maxResponseSize / 10
	for name, write := range map[string]bool{"reads": false, "reads and a write": true} {
		ask := func(method string, what interaction) *bundleEntry {
			r := &request{Request: httptest.NewRequest(method, "/", nil), dialect: fhirDialect, site: Endpoint{Store: noStore{}}, authorizer: allowAll{}}
			return &bundleEntry{entryRequest: &entryRequest{method: method}, interaction: what, request: r}
		}
		var entries []*bundleEntry
		for range many {
			entries = append(entries, ask(http.MethodGet, interaction{run: func(w http.ResponseWriter, _ *request) error {
				_, err := w.Write(make([]byte, size))
				return err
			}}))
		}
		if write {
			entries = append(entries, ask(http.MethodPost, interaction{plan: func(http.ResponseWriter, *request) (stepFunc, error) {
				return func(error) (step, error) { return step{}, store.ErrUnavailable }, nil
			}}))
		} else {
			entries = append(entries, ask(http.MethodGet, interaction{run: func(http.ResponseWriter, *request) error { return store.ErrUnavailable }}))
		}
		if err := h.processTransaction(entries[0].request, entries, conditionalReferences{}); !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		kept := 0
		for _, e := range entries {
			kept += len(e.response.body)
		}
		if limit := maxResponseSize + many<<10; kept > limit || write && kept > 0 {
			t.Errorf("%s: responses of %d bytes are kept", name, kept)
		}
	}
}

type noStore struct{ store.Restricted }

func TestEntryErrorExpressions(t *testing.T) {
	for expression, want := range map[string]string{
		"Patient.name[0].given": "Bundle.entry[3].resource.name[0].given", "Patient": "Bundle.entry[3].resource",
		"": "Bundle.entry[3]", "Bundle.entry[2].request": "Bundle.entry[2].request",
	} {
		issues := r4.Errors{{Expression: expression}, {}}
		p := problemOf(&entryError{"Bundle.entry[3]", issues})
		if p.issues[0].Expression != want || issues[0].Expression != expression {
			t.Errorf("%q: got %q", expression, p.issues[0].Expression)
		}
	}
	if got := problemOf(&entryError{"Bundle.entry[0]", store.ErrNotFound}).status; got != 404 {
		t.Errorf("status %d", got)
	}
}
