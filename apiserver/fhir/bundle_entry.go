package fhir

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/jsonwalk"
)

// bundleEntry is an entry of a Bundle that is being processed.
type bundleEntry struct {
	*entryRequest
	// request is the HTTP request that the entry describes, and interaction is the interaction of that
	// request. If err is set, both are incomplete, and err is the result of the entry.
	request     *request
	interaction interaction
	err         error
	response    *entryResponse
}

// resolveEntries makes a request of each entry of a Bundle and finds its interaction, by the routes
// of ordinary requests. An error in an entry is stored in its err.
func (h *handler) resolveEntries(bundle bundleRequest, r *request, sentDialect *dialect) []*bundleEntry {
	entries := make([]*bundleEntry, len(bundle.entries))
	for i, sent := range bundle.entries {
		e := &bundleEntry{entryRequest: sent, request: &request{
			Request: r.WithContext(audit.Part(r.Context(), sent.method)), dialect: r.dialect, site: r.site, caller: r.caller,
			authorizer: r.authorizer, errorPages: r.errorPages, inBundle: true,
		}}
		entries[i] = e
		address, err := e.address(r.bases())
		if err != nil {
			e.err = err
			continue
		}
		body, contentType, err := e.body(sentDialect)
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
		alone := (&http.Request{
			Method: e.method, URL: address, Header: header,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}).WithContext(e.request.Context())
		supported, err := h.router.find(alone)
		if err != nil {
			e.err = err
			continue
		}
		e.request.Request = alone
		e.interaction, _, e.err = e.request.match(supported)
		e.request.recordInteraction(e.interaction)
	}
	return entries
}

// address returns the URL by which the router finds the interaction of the entry. The url of the
// entry must be relative or below one of bases. The URL has a placeholder for the siteId, because
// the site is already known. Errors: r4.Errors.
func (e *bundleEntry) address(bases []string) (*url.URL, error) {
	if len(e.issues) > 0 {
		return nil, e.issues
	}
	invalid := r4.Errors{invalidBundle(e.path+".request.url", "the url "+r4.Quote(e.url)+" is not a path below "+bases[0]+"; send one, such as Patient/rex")}
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

// body returns the request body of the entry: its resource or, for a PATCH, the data of a Binary.
func (e *bundleEntry) body(sentDialect *dialect) (body []byte, contentType string, err error) {
	if e.method != http.MethodPatch {
		return e.resource, sentDialect.mediaType, nil
	}
	if e.resource.Kind() == jsontext.KindBeginObject {
		members := map[string]string{}
		for m := range jsonwalk.Members(e.resource) {
			members[m.Name], _ = unquote(m.Value)
		}
		data, err := base64.StdEncoding.DecodeString(members["data"])
		if err == nil && members["resourceType"] == "Binary" {
			return data, members["contentType"], nil
		}
	}
	return nil, "", r4.Errors{invalidBundle(e.path+".resource",
		"the resource of a PATCH must be a Binary with the contentType "+patchFormat+" and the patch in base64 as its data")}
}

// sortForProcessing returns the entries in the order of processing: first DELETE, then POST, then PUT
// and PATCH, then GET and HEAD. Entries of the same rank keep their order. R4 http.html#trules.
func sortForProcessing(entries []*bundleEntry) []*bundleEntry {
	order := map[string]int{"DELETE": 0, "POST": 1, "PUT": 2, "PATCH": 2}
	rank := func(e *bundleEntry) int {
		if at, ok := order[e.method]; ok {
			return at
		}
		return len(order)
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *bundleEntry) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// perform performs the interaction of the entry and records the response. If it returns an error,
// the response is incomplete, and the caller may call fail to replace it.
func (e *bundleEntry) perform(h *handler) error {
	e.reset()
	if e.err != nil {
		return e.err
	}
	return h.perform(e.response, e.request, e.interaction)
}

// reset discards the response of an earlier attempt.
func (e *bundleEntry) reset() {
	e.response = &entryResponse{header: http.Header{}}
	e.request.isOutcome, e.request.lastModified = false, time.Time{}
}

// fail replaces the response to the entry by the response to an error.
func (e *bundleEntry) fail(h *handler, err error) {
	e.reset()
	h.fail(e.response, e.request, err)
}

// entryResponse records the response to an entry. It implements http.ResponseWriter.
type entryResponse struct {
	header http.Header
	status int
	body   []byte
}

func (a *entryResponse) Header() http.Header { return a.header }

func (a *entryResponse) WriteHeader(status int) { a.status = status }

func (a *entryResponse) Write(body []byte) (int, error) {
	a.body = append(a.body, body...)
	return len(body), nil
}

// addResponse adds the response to an entry. R4 http.html#transaction-response.
func (b *bundleWriter) addResponse(e *bundleEntry) {
	b.startEntry().text("{")
	if len(e.response.body) > 0 && !e.request.isOutcome {
		b.text(`"resource":`).text(string(e.response.body)).text(",")
	}
	status := strconv.Itoa(e.response.status) + " " + http.StatusText(e.response.status)
	b.text(`"response":{"status":`).quote(status)
	for _, field := range []struct{ name, element string }{{"Location", "location"}, {"ETag", "etag"}} {
		if value := e.response.header.Get(field.name); value != "" {
			b.text(`,"` + field.element + `":`).quote(value)
		}
	}
	if !e.request.lastModified.IsZero() {
		b.text(`,"lastModified":"`)
		b.json = r4.AppendInstant(b.json, e.request.lastModified)
		b.text(`"`)
	}
	if len(e.response.body) > 0 && e.request.isOutcome { // the response to a HEAD has no body
		b.text(`,"outcome":`).text(string(e.response.body))
	}
	b.text("}}")
}
