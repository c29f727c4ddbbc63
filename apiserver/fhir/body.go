package fhir

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// body is a resource that a client sent.
type body struct {
	// text is as it was sent.
	text     []byte
	resource r4.Resource
	dialect  *dialect
}

func (b body) stored() store.Body {
	return store.Body{JSON: b.resource.Body, IDOffset: b.resource.IDOffset, MetaOffset: b.resource.MetaOffset}
}

// readResource reads the body as a resource of the path's type.
func (r *request) readResource(w http.ResponseWriter) (body, error) {
	spoken, err := bodyDialect(r.Header.Get("Content-Type"))
	if err != nil {
		return body{}, err
	}
	raw, err := r.readBody(w)
	if err != nil {
		return body{}, err
	}
	return r.readText(raw, spoken)
}

// readText reads a text in a dialect as a resource of the path's type.
func (r *request) readText(text []byte, spoken *dialect) (body, error) {
	resource, err := r4.Read(text, r4.Options{Type: r.kind.Name, Optional: spoken.optional, IgnoreID: r.Method == http.MethodPost})
	return body{text: text, resource: resource, dialect: spoken}, err
}

// readForm reads the body as a form.
func (r *request) readForm(w http.ResponseWriter) (url.Values, error) {
	const form = "application/x-www-form-urlencoded"
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); !strings.EqualFold(kind, form) && (kind != "" || r.ContentLength != 0) {
		return nil, &mediaTypeError{fmt.Sprintf("a search by POST takes parameters as %s, not %s", form, r4.Quote(kind))}
	}
	raw, err := r.readBody(w)
	if err != nil {
		return nil, err
	}
	values, err := web.ParseQuery(string(raw))
	if err != nil {
		return nil, &invalidError{code: codeInvalidQuery, diagnostics: "the form cannot be read: " + err.Error()}
	}
	return values, nil
}

// maxBodySize is the site's limit of a body.
func (r *request) maxBodySize() int64 {
	return cmp.Or(r.site.MaxBodySize, defaultMaxBodySize)
}

// readBody reads the whole body, inflated, within the site's limit.
func (r *request) readBody(w http.ResponseWriter) ([]byte, error) {
	return web.ReadBody(w, r.Request, r.maxBodySize())
}
