package fhir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

// facadeWithoutStorage is a facade of one site whose storage is away.
func facadeWithoutStorage(t testing.TB) *handler {
	t.Helper()
	site := Endpoint{Settings: settings.Settings{ID: "demo", UpdateCreate: true}, BaseURL: "https://h/site/demo/fhir"}
	h := &handler{Config: Config{
		Admit:      func(*http.Request, string) (Endpoint, access.Caller, error) { return site, access.Caller{}, nil },
		Find:       func(*http.Request, string) (Endpoint, error) { return site, nil },
		Authorizer: allowAll{},
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:        time.Now,
	}}
	h.router = h.routes()
	return h
}

// FuzzURL sends any request line. The response is never an internal error and always a resource.
func FuzzURL(f *testing.F) {
	for _, path := range []string{
		"", "/", "/metadata", "/_history?_since=2020&_at=2021,ge2022", "/patient", "/Patient/", "/patient?identifier=a|b", "/patient/_search",
		"/patient/_history?_count=0", "/patient/$validate?mode=update", "/patient/%24validate", "/patient/a", "/patient/A%2Eb", "/patient/a/history",
		"/patient/a/_history", "/patient/a/_history/1?_elements=name", "/patient/a/$validate", "/observation/1", "//", "/patient//", "/patient/%2F",
		"/patient/a/person?gender=x", "/patient/a/*", "/patient/a/%2a/_search", "/patient/a/location", "/patient/a/_search", "/patient?_page_token=AAAA", "/patient?_format=xml", "/patient?_pretty=x&_count=-1", "/%70atient/a", "/patient/..%2f..", "?_type=Patient", "/metadata?mode=x",
		"/patient?organization.name=x&_has:Group:member:code=a|b&_include:iterate=*", "/location?near=1|2|3|km&partof:below=1", "/_search?name=x",
		"?_type=Patient,Person&name:exact=a%2C&_sort=-birthdate&_summary=text", "/group?characteristic-value=a$b&_elements=x&_revinclude=Patient:link",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"} {
			f.Add(method, "/site/demo/fhir"+path)
		}
	}
	f.Add("GET", "*")
	f.Add("FROB", "http://h/site/demo/fhir/patient")
	h := facadeWithoutStorage(f)
	handler := h.middleware()
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return // net/http refuses it by itself
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError || w.Code < 200 {
			t.Fatalf("%s %s: status %d, %s", method, target, w.Code, w.Body)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
			t.Fatalf("%s %s: 405 without Allow", method, target)
		}
		var said struct{ ResourceType string }
		if r.Method != http.MethodHead && (json.Unmarshal(w.Body.Bytes(), &said) != nil || said.ResourceType == "") {
			t.Fatalf("%s %s: no resource: %s", method, target, w.Body)
		}
	})
}

// FuzzBundle processes any Bundle up to the storage. Each entry has a response, the response is a
// valid Bundle, and resolving its links leaves valid JSON.
func FuzzBundle(f *testing.F) {
	const patient = `{"resourceType":"Patient","id":"a"}`
	entry := func(method, url, rest string) string {
		return `{"fullUrl":"urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a","resource":` + patient + `,"request":{"method":"` + method + `","url":"` + url + `"` + rest + `}}`
	}
	for _, entries := range []string{
		"", entry("PUT", "Patient/a", ""), entry("POST", "Patient", `,"ifNoneExist":"identifier=a"`), entry("GET", "Patient?_id=a", `,"ifModifiedSince":"2020-01-01T00:00:00Z"`),
		entry("DELETE", "https://h/site/demo/fhir/Patient/a", `,"ifMatch":"W/\"1\""`), entry("PATCH", "/patient/a", ""), entry("POST", "Patient/$validate", ""),
		`{"fullUrl":"http://e.example/Patient/1","resource":{"resourceType":"Binary","contentType":"application/json-patch+json","data":"W10="},"request":{"method":"PATCH","url":"Patient/a"}}`,
		`{"fullUrl":"http://e.example/RelatedPerson/1","resource":{"resourceType":"RelatedPerson","patient":{"reference":"Patient?identifier=1"},"text":{"status":"generated","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\"><a href='urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a'>x</a></div>"}},"request":{"method":"POST","url":"RelatedPerson"}},` + entry("POST", "Patient", ""),
		"5", `{"request":{"method":"GET","url":"metadata"}}`, entry("FETCH", "../..", `,"x":[[[[]]]]`),
	} {
		for _, kind := range []string{"batch", "transaction"} {
			f.Add([]byte(`{"resourceType":"Bundle","type":"` + kind + `","entry":[` + entries + `]}`))
		}
	}
	h := facadeWithoutStorage(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 20
		sent, err := readBundle(text, limit)
		if err != nil {
			if p := problemOf(err); p.status >= http.StatusInternalServerError {
				t.Fatalf("%v", err)
			}
			return
		}
		conditional := conditionalReferences{}
		for _, e := range sent.entries {
			if e.resource, err = conditional.replaceSearchURIs(e.resource); err != nil {
				t.Fatal(err)
			}
		}
		r := &request{
			Request: httptest.NewRequest(http.MethodPost, "/site/demo/fhir", nil).WithContext(context.Background()),
			dialect: fhirDialect, authorizer: allowAll{},
		}
		r.site, _ = h.Find(nil, "demo")
		entries := h.resolveEntries(sent, r, fhirDialect)
		h.processBatch(entries)
		b := newBundleWriter("batch-response", store.UnknownTotal, nil)
		for _, e := range entries {
			if e.response.status == http.StatusInternalServerError {
				t.Fatalf("%s %s: %s", e.method, e.url, e.response.body)
			}
			b.addResponse(e)
		}
		if _, err := r4.Read(b.finish(), r4.Options{Type: "Bundle"}); err != nil {
			t.Fatalf("%v: %s", err, b.json)
		}
		resolveAll(t, h, r, sent, conditional)
	})
}

// resolveAll resolves the links of a bundle as if all that it writes had been
// found as it is meant.
func resolveAll(t *testing.T, h *handler, r *request, sent bundleRequest, conditional conditionalReferences) {
	writes, _, err := h.planEntries(h.resolveEntries(sent, r, fhirDialect))
	if err != nil {
		return
	}
	for _, w := range writes {
		if w.method == http.MethodPatch || len(w.header) > 0 || strings.Contains(w.url, "?") {
			return // what they come to depends on what is stored
		}
		if w.step, err = w.nextStep(nil); err != nil {
			return
		}
	}
	if checkDistinct(writes) != nil {
		return
	}
	links, err := newLinkResolver(h, r, writes, conditional)
	if err != nil {
		return
	}
	for reference := range conditional {
		links.conditionalTargets[conditional[reference]] = "Patient/chosen"
	}
	for _, w := range writes {
		if err := links.resolveEntry(w); err != nil {
			continue
		}
		if text := w.step.sent.text; len(text) > 0 && !jsontext.Value(slices.Clone(text)).IsValid() {
			t.Fatalf("not valid: %s", text)
		}
		for reference := range conditional {
			if bytes.Contains(w.step.op.Body.JSON, []byte(`"reference":"`+reference+`"`)) {
				t.Fatalf("%s is not resolved: %s", reference, w.step.op.Body.JSON)
			}
		}
	}
}
