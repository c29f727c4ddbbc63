package portal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"time"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	mediaJSON    = "application/json"
	mediaHTML    = "text/html; charset=utf-8"
	mediaProblem = "application/problem+json"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{"ofSite": ofSite}).ParseFS(assets, "assets/*.html"))

// ofSite returns the data for a template of a part of a page: the site, and what the part shows.
func ofSite(site Site, of any) referencePage { return referencePage{Site: site, Of: of} }

// tagSyntax is the syntax of ETags. RFC 9110 §8.8.3.
var tagSyntax = regexp.MustCompile(`^(W/)?"([\x21\x23-\x7e\x80-\xff]*)"$`)

// respondTagged responds with a body and its ETag, or with 304 if the client has it. The tag is weak,
// because the response may be compressed.
func respondTagged(w http.ResponseWriter, r *http.Request, mediaType string, body []byte) error {
	sum := sha256.Sum256(body)
	return respondKnown(w, r, mediaType, base64.RawURLEncoding.EncodeToString(sum[:12]), body)
}

// respondKnown is like respondTagged, for a body whose hash is known.
func respondKnown(w http.ResponseWriter, r *http.Request, mediaType, hash string, body []byte) error {
	tag := web.ETag{Opaque: hash, Weak: true}
	notModified, err := web.IsNotModified(r.Header, tagSyntax, tag, time.Time{})
	if err != nil {
		notModified = false // a tag of another form is not ours
	}
	w.Header().Set("ETag", tag.String())
	if notModified {
		web.RespondEmpty(w, http.StatusNotModified)
		return nil
	}
	web.Respond(w, r, http.StatusOK, mediaType, body)
	return nil
}

// respondPage responds with a page.
func respondPage(w http.ResponseWriter, r *http.Request, status int, name string, of any) error {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, of); err != nil {
		return fmt.Errorf("write the page %s: %w", name, err)
	}
	protect(w.Header())
	web.Respond(w, r, status, mediaHTML, page.Bytes())
	return nil
}

func respondJSON(w http.ResponseWriter, r *http.Request, of any) error {
	body, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("encode a JSON response: %w", err)
	}
	web.Respond(w, r, http.StatusOK, mediaJSON, body)
	return nil
}

// problem is an error response. RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

// fail responds with an error: to browsers with a page, and to other clients with a problem document.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := web.FailureOf(err)
	if f.Status >= http.StatusInternalServerError && f.Status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()), "method", r.Method, "path", r.URL.Path, "status", f.Status, "err", err)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	p := problem{Type: h.ErrorPages.Of(f.Code), Title: errorcode.Text(f.Code), Status: f.Status, Detail: f.Detail, Code: f.Code}
	if prefersHTML(r) {
		err := respondPage(w, r, f.Status, "failure.html", p)
		if err == nil {
			return
		}
		h.Log.ErrorContext(r.Context(), "cannot write an error page", "request", web.RequestID(r.Context()), "path", r.URL.Path, "err", err)
	}
	body, _ := json.Marshal(p) // strings and numbers can always be encoded
	web.Respond(w, r, f.Status, mediaProblem, body)
}
