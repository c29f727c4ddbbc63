package randomsearch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

const base = "https://paddock.example/site/s/fhir"

// now is what the facade takes for the time.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// site is a site under test, and what it must know.
type site struct {
	t       *testing.T
	handler http.Handler
	truth   *searchtruth.Truth
	data    *data
	// resources are those that live, as they were written.
	resources map[string]object
	records   map[string]*Record
}

// newSite makes a site of a store.
func newSite(t *testing.T, seed uint64, records store.Store) *site {
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	truth, err := searchtruth.New(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, truth: truth, resources: map[string]object{}, records: map[string]*Record{},
		data: &data{Rand: rand.New(rand.NewPCG(seed, 5)), base: base, ids: map[string][]string{}},
	}
	s.handler = newFacade(t, records)
	return s
}

// Headers by which a request of the tests says who asks, and what the site's setting is.
const (
	callerHeader   = "X-Caller"
	includedHeader = "X-Max-Included"
	hiddenHeader   = "X-Hidden"
)

// hiding shows a store to a caller whom a privacy rule denies records with a security label.
func hiding(records store.Store, label string) store.Restricted {
	return gatetest.Open(records, &privacy.View{
		Rules:  &privacy.Rules{Rules: []privacy.Rule{{Security: []privacy.Coding{{Code: label}}, Deny: &privacy.Callers{Groups: []string{"kubernetes:denied"}}}}},
		Caller: access.Caller{Groups: []string{"denied"}},
		Rights: func(string) (privacy.Rights, error) { return privacy.Rights{Privileged: true}, nil },
		Reads:  gatetest.Reads,
	}, base)
}

func newFacade(t *testing.T, records store.Store) http.Handler {
	open := fhir.Endpoint{Settings: settings.Settings{ID: "s", UpdateCreate: true}, BaseURL: base, Store: gatetest.Everything(records)}
	handler, err := fhir.New(fhir.Config{
		Admit: func(r *http.Request, _ string) (fhir.Endpoint, access.Caller, error) {
			admitted := open
			if label := r.Header.Get(hiddenHeader); label != "" {
				admitted.Store = hiding(records, label)
			}
			if limit, err := strconv.Atoi(r.Header.Get(includedHeader)); err == nil {
				admitted.Limits.MaxIncluded = new(int32(limit))
			}
			return admitted, access.Caller{Name: r.Header.Get(callerHeader)}, nil
		},
		Find:       func(*http.Request, string) (fhir.Endpoint, error) { return open, nil },
		Authorizer: rights{},
		TokenKeys:  keyring.Fixed(make([]byte, 32)),
		Now:        func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// rights lets callers who are named after types see records of these types only.
type rights struct{}

func (rights) Authorize(_ context.Context, caller access.Caller, _ access.Tenant, action access.Action) error {
	if caller.Name == "" {
		return nil
	}
	for name := range strings.SplitSeq(caller.Name, ",") {
		if typ, ok := r4.TypeOf(name); ok && typ.Resource == action.Resource {
			return nil
		}
	}
	return &access.ForbiddenError{Caller: caller.Name, Action: action}
}

// do sends a request.
func (s *site) do(method, path, body string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Accept", "application/fhir+json")
	r.Header.Set("Content-Type", "application/fhir+json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// fill writes records of all types. Records of different types can have one id.
func (s *site) fill(perType int) {
	for _, typ := range searchtruth.Kept {
		for i := range perType {
			id := fmt.Sprintf("%s-%d", strings.ToLower(typ), i)
			if i%4 != 0 {
				id = fmt.Sprintf("r-%d", i)
			}
			s.data.ids[typ] = append(s.data.ids[typ], id)
		}
	}
	var writes []*write
	for i := range perType {
		for _, typ := range searchtruth.Kept {
			writes = append(writes, s.write(typ, s.data.ids[typ][i]))
		}
	}
	s.send(writes)
}

// change updates, deletes and creates some records.
func (s *site) change(count int) {
	chosen := map[string]bool{}
	var writes []*write
	for len(writes) < count {
		typ := pick(s.data.Rand, searchtruth.Kept)
		id := pick(s.data.Rand, s.data.ids[typ])
		name := typ + "/" + id
		if chosen[name] {
			continue
		}
		chosen[name] = true
		if s.resources[name] != nil && s.data.chance(25) {
			writes = append(writes, &write{method: http.MethodDelete, typ: typ, id: id, path: "/site/s/fhir/" + name})
			continue
		}
		writes = append(writes, s.write(typ, id))
	}
	s.send(writes)
}

// write is a write of a record, and its answer.
type write struct {
	method, typ, id, path, body string
	resource                    object
	code                        int
	answer                      []byte
}

// write makes a record, new or again, now and then with its id in capitals.
func (s *site) write(typ, id string) *write {
	spelled := id
	if s.resources[typ+"/"+id] == nil && s.data.chance(30) {
		spelled = strings.ToUpper(id)
	}
	resource := s.data.resource(typ, spelled)
	body, err := json.Marshal(resource)
	if err != nil {
		s.t.Fatal(err)
	}
	return &write{method: http.MethodPut, typ: typ, id: id, path: "/site/s/fhir/" + typ + "/" + spelled, body: string(body), resource: resource}
}

// send writes several at a time, so that some are written in the same millisecond.
func (s *site) send(writes []*write) {
	var workers sync.WaitGroup
	for chunk := range slices.Chunk(writes, (len(writes)+7)/8) {
		workers.Go(func() {
			for _, w := range chunk {
				answer := s.do(w.method, w.path, w.body, nil)
				w.code, w.answer = answer.Code, answer.Body.Bytes()
			}
		})
	}
	workers.Wait()
	for _, w := range writes {
		s.note(w)
	}
}

// note notes what a write did.
func (s *site) note(w *write) {
	name := w.typ + "/" + w.id
	if w.code >= http.StatusMultipleChoices {
		s.t.Fatalf("%s %s: %d %s\n%s", w.method, name, w.code, w.answer, w.body)
	}
	if w.method == http.MethodDelete {
		delete(s.resources, name)
		delete(s.records, name)
		return
	}
	var answer struct {
		Meta struct{ LastUpdated time.Time }
	}
	if err := json.Unmarshal(w.answer, &answer); err != nil {
		s.t.Fatal(err)
	}
	r := &Record{Type: w.typ, ID: w.id, Updated: answer.Meta.LastUpdated.UnixMicro()}
	r.Created = r.Updated
	if before := s.records[name]; before != nil && w.code == http.StatusOK {
		r.Created = before.Created
	}
	s.records[name], s.resources[name] = r, w.resource
}

// world is what is known of the records by HL7's expressions.
func (s *site) world() *World {
	w := &World{base: base, parameters: s.truth.Parameters, compartments: s.truth.Compartments, byName: map[string]*Record{}}
	var bodies [][]byte
	names := slices.Sorted(maps.Keys(s.resources))
	for _, name := range names {
		body, err := json.Marshal(s.resources[name])
		if err != nil {
			s.t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	entries, err := s.truth.Entries(s.t.Context(), bodies)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, name := range names {
		r := *s.records[name]
		r.values = map[string][]store.Value{}
		for _, entry := range entries[i] {
			r.values[entry.Param] = append(r.values[entry.Param], entry.Value)
		}
		w.add(&r)
	}
	return w
}

// sounds are the codes of the words that the data has.
func (s *site) sounds() map[string][]string {
	var words []string
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
	}
	bodies := make([][]byte, len(words))
	for i, word := range words {
		bodies[i], _ = json.Marshal(object{"resourceType": "Practitioner", "name": []any{object{"family": word}}})
	}
	entries, err := s.truth.Entries(s.t.Context(), bodies)
	if err != nil {
		s.t.Fatal(err)
	}
	codes := map[string][]string{}
	for i, word := range words {
		for _, entry := range entries[i] {
			if text, ok := entry.Value.(store.Text); ok && entry.Param == "phonetic" {
				codes[word] = append(codes[word], text.Original)
			}
		}
	}
	return codes
}
