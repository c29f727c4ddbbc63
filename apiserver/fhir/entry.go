package fhir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// entry is an entry of a bundle on its way through its interaction.
type entry struct {
	*sentEntry
	// request is the one that the entry stands for, what is what it asks for, and
	// err why it asks for nothing that could be done.
	request *request
	what    interaction
	err     error
	answer  *entryAnswer
}

type entryKey struct{}

// entryOf returns the entry whose interaction is looked for, if it is one's.
func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// entriesOf finds out what each entry of a bundle asks for. The router that finds
// the interactions of requests finds those of entries too.
func (h *handler) entriesOf(bundle sentBundle, r *request, spoken *dialect) []*entry {
	entries := make([]*entry, len(bundle.entries))
	for i, sent := range bundle.entries {
		e := &entry{sentEntry: sent, request: &request{
			Request: r.Request, dialect: r.dialect, site: r.site, caller: r.caller,
			authorizer: r.authorizer, inBundle: true,
		}}
		entries[i] = e
		address, err := e.address(r.bases())
		if err != nil {
			e.err = err
			continue
		}
		body, contentType, err := e.body(spoken)
		if err != nil {
			e.err = err
			continue
		}
		header := http.Header{}
		header.Set("Accept", r.dialect.mediaType)
		if len(body) > 0 {
			header.Set("Content-Type", contentType)
		}
		header["Prefer"] = r.Header.Values("Prefer")
		for name, value := range e.header {
			header.Set(name, value)
		}
		ctx := context.WithValue(r.Context(), entryKey{}, e)
		ctx = context.WithValue(ctx, chi.RouteCtxKey, nil) // it starts at the root again
		h.router.ServeHTTP(nil, (&http.Request{
			Method: e.method, URL: address, Header: header,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}).WithContext(ctx))
	}
	return entries
}

// address turns the url of the entry, which is relative to one of the bases, into one that
// the router knows. Whose site it is has been settled.
func (e *entry) address(bases []string) (*url.URL, error) {
	if len(e.issues) > 0 {
		return nil, e.issues
	}
	invalid := r4.Errors{invalidBundle(e.at+".request.url", "the url "+r4.Quote(e.url)+" names nothing below "+bases[0])}
	below := e.url
	for _, base := range bases {
		if rest, found := strings.CutPrefix(e.url, base+"/"); found {
			below = rest
			break
		}
	}
	relative, err := url.Parse(below)
	if err != nil || relative.Scheme != "" || relative.Host != "" || relative.User != nil || relative.Fragment != "" {
		return nil, invalid
	}
	path := strings.TrimPrefix(relative.Path, "/")
	if path == "" && (relative.RawQuery == "" || e.method != http.MethodGet) { // a bundle in a bundle
		return nil, invalid
	}
	const prefix = "/site/-/fhir/"
	address := &url.URL{Path: prefix + path, RawQuery: relative.RawQuery}
	if relative.RawPath != "" {
		address.RawPath = prefix + strings.TrimPrefix(relative.RawPath, "/")
	}
	return address, nil
}

// body is what the request of the entry sends: the resource, or the patch that it
// holds as a Binary.
func (e *entry) body(spoken *dialect) (body []byte, contentType string, err error) {
	if e.method != http.MethodPatch {
		return e.resource, spoken.mediaType, nil
	}
	if e.resource.Kind() == jsontext.KindBeginObject {
		members := map[string]string{}
		_ = eachMember(e.resource, func(name string, value jsontext.Value) error {
			members[name], _ = stringOf(value)
			return nil
		})
		data, err := base64.StdEncoding.DecodeString(members["data"])
		if err == nil && members["resourceType"] == "Binary" {
			return data, members["contentType"], nil
		}
	}
	return nil, "", r4.Errors{invalidBundle(e.at+".resource",
		"the resource of a PATCH must be a Binary with the contentType "+patchFormat+" and the patch as its data")}
}

// inOrder sorts entries as they are to be processed: DELETE, POST, PUT and PATCH,
// GET and HEAD. R4 http.html#trules.
func inOrder(entries []*entry) []*entry {
	order := map[string]int{"DELETE": 0, "POST": 1, "PUT": 2, "PATCH": 2}
	rank := func(e *entry) int {
		if at, ok := order[e.method]; ok {
			return at
		}
		return len(order)
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// perform does what the entry asks for.
func (e *entry) perform(h *handler) error {
	e.begin()
	if e.err != nil {
		return e.err
	}
	return h.perform(e.answer, e.request, e.what)
}

// begin makes room for a new answer.
func (e *entry) begin() {
	e.answer = &entryAnswer{header: http.Header{}}
	e.request.saysOutcome, e.request.updated = false, time.Time{}
}

// fail answers the entry with an error.
func (e *entry) fail(h *handler, err error) {
	e.begin()
	h.fail(e.answer, e.request, err)
}

// entryAnswer takes the answer to an entry (http.ResponseWriter).
type entryAnswer struct {
	header http.Header
	status int
	body   []byte
}

func (a *entryAnswer) Header() http.Header { return a.header }

func (a *entryAnswer) WriteHeader(status int) { a.status = status }

func (a *entryAnswer) Write(body []byte) (int, error) {
	a.body = append(a.body, body...)
	return len(body), nil
}

// answered adds the answer to an entry. R4 http.html#transaction-response.
func (b *bundle) answered(e *entry) {
	b.entry().text("{")
	if len(e.answer.body) > 0 && !e.request.saysOutcome {
		b.text(`"resource":`).text(string(e.answer.body)).text(",")
	}
	status := strconv.Itoa(e.answer.status) + " " + http.StatusText(e.answer.status)
	b.text(`"response":{"status":`).quote(status)
	for _, field := range []struct{ name, element string }{{"Location", "location"}, {"ETag", "etag"}} {
		if value := e.answer.header.Get(field.name); value != "" {
			b.text(`,"` + field.element + `":`).quote(value)
		}
	}
	if !e.request.updated.IsZero() {
		b.text(`,"lastModified":"`)
		b.json = r4.AppendInstant(b.json, e.request.updated)
		b.text(`"`)
	}
	if e.request.saysOutcome {
		b.text(`,"outcome":`).text(string(e.answer.body))
	}
	b.text("}}")
}
