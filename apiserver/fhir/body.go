package fhir

import (
	"net/http"
	"net/url"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/web"
)

// body is a resource in the body of a request, or what a patch made of a stored resource.
type body struct {
	// text is the JSON of the resource before it was prepared for storage. $validate does not set it.
	text     []byte
	resource r4.Resource
	dialect  *dialect
}

// readResource reads the body as a resource of the type in the path.
func (r *request) readResource(w http.ResponseWriter) (body, error) {
	sentDialect, err := bodyDialect(r.Header)
	if err != nil {
		return body{}, err
	}
	raw, err := r.readBody(w)
	if err != nil {
		return body{}, err
	}
	return r.readText(raw, sentDialect)
}

// readText parses text as a resource of the type in the path.
func (r *request) readText(text []byte, sentDialect *dialect) (body, error) {
	resource, err := readWhole(text, r4.Options{
		Type: r.kind.Name, Optional: sentDialect.optional, IgnoreID: r.Method == http.MethodPost, Bases: r.bases(), Index: true,
	})
	return body{text: text, resource: resource, dialect: sentDialect}, err
}

// readWhole is r4.Read for a resource to store. It refuses a projection, which would remove the elements that
// it lacks from its record. R4 search.html#elements. Errors: r4.Errors.
func readWhole(text []byte, options r4.Options) (r4.Resource, error) {
	resource, err := r4.Read(text, options)
	if err == nil && r4.IsSubset(text) {
		err = r4.Errors{{
			Severity: r4.SeverityError, Type: issueBusinessRule, Code: codeSubsetted, Expression: options.Type + ".meta.tag",
			Diagnostics: "the resource has the tag SUBSETTED, so it may lack elements of the record; read it without _elements and _summary, change it and send it whole; if the stored record has the tag itself, remove the tag",
		}}
	}
	return resource, err
}

func (r *request) readForm(w http.ResponseWriter) (url.Values, error) {
	const form = "application/x-www-form-urlencoded"
	kind, _, err := web.ParseContentType(r.Header, form)
	if err != nil {
		return nil, err
	}
	if kind == "" && r.ContentLength != 0 {
		return nil, &web.MediaTypeError{Problem: "Content-Type is missing; send " + form}
	}
	raw, err := r.readBody(w)
	if err != nil {
		return nil, err
	}
	values, err := web.ParseQuery(string(raw))
	if err != nil {
		return nil, &invalidError{code: codeInvalidQuery, diagnostics: "the form in the body is invalid: " + err.Error()}
	}
	return values, nil
}

func (r *request) maxBodySize() int64 {
	return r.site.MaxBodySize()
}

// readBody reads and decompresses the whole body, up to the site's limit. Errors: those of
// web.ReadBody.
func (r *request) readBody(w http.ResponseWriter) ([]byte, error) {
	return web.ReadBody(w, r.Request, r.maxBodySize())
}
