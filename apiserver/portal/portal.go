// Package portal serves the pages and documents that explain the APIs to people and programs. These
// are the landing page of a site, its OpenAPI document, the API reference made from that document,
// and a page for each code of errors. Everything is embedded, and nothing is loaded from other
// servers.
package portal

import (
	"cmp"
	"embed"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/gzhttp"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/web"
)

//go:embed assets
var assets embed.FS

// Guides is the address of the guides for users.
const Guides = "https://github.com/paddock-health/paddock/tree/main/docs/guides"

// Site is a site as the portal shows it.
type Site struct {
	ID string
	// BaseURL is the public address without a trailing slash, such as https://host/site/1042.
	BaseURL string
}

// Config has the dependencies of the portal. Find is required.
type Config struct {
	// Find finds the site of a request. Errors: access.ErrSiteHidden if the site does not exist or is
	// hidden from the caller; access.ErrUnavailable; *limits.ExceededError.
	Find func(r *http.Request, siteID string) (Site, error)
	// ErrorPages is the address of the pages that explain the codes of errors.
	ErrorPages errorcode.Pages
	// Log receives errors of requests. Default: slog.Default().
	Log *slog.Logger
}

// handler serves the portal.
type handler struct{ Config }

// New returns the handler of /, of /errors and the pages below it, and of the pages and documents of
// sites.
func New(config Config) http.Handler {
	config.Log = cmp.Or(config.Log, slog.Default())
	h := &handler{config}
	router := chi.NewRouter()
	router.Use(web.StripSlash)
	for path, serve := range h.paths() {
		router.Handle(path, h.serve(serve))
	}
	unknown := h.serve(func(http.ResponseWriter, *http.Request) error {
		return &web.UnknownPathError{Paths: "the start page is /"}
	})
	router.NotFound(unknown)
	router.MethodNotAllowed(h.serve(func(http.ResponseWriter, *http.Request) error { return &web.UnknownMethodError{} }))
	return web.Identify(web.Recover(h.Log, h.fail, gzhttp.GzipHandler(router)))
}

// paths returns what serves each path.
func (h *handler) paths() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"/":                           h.index,
		"/errors":                     h.errors,
		"/errors/{code}":              h.errorPage,
		"/site/{siteId}":              h.ofSite(h.landing),
		"/site/{siteId}/openapi.json": h.ofSite(h.document),
		"/site/{siteId}/docs":         h.ofSite(h.reference),
		"/site/{siteId}/docs/{file}":  h.ofSite(h.asset),

		"/site/{siteId}/docs/operations/{operation}": h.ofSite(h.referenceOperation),
		"/site/{siteId}/docs/schemas/{schema}":       h.ofSite(h.referenceSchema),
	}
}

// serve returns the handler of one path, which supports GET and HEAD.
func (h *handler) serve(next func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := web.Methods[struct{}]{http.MethodGet: {}}.Find(r.Method)
		if err == nil {
			err = next(w, r)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

// ofSite returns a function that finds the site of the path and calls next.
func (h *handler) ofSite(next func(http.ResponseWriter, *http.Request, Site) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		site, err := h.Find(r, web.PathParameter(r, "siteId"))
		if err != nil {
			return err
		}
		return next(w, r, site)
	}
}

// prefersHTML reports whether the client is a browser: it accepts HTML by name, and does not prefer
// JSON.
func prefersHTML(r *http.Request) bool {
	ranges := web.ParseAccept(r.Header)
	html, at := web.Preference(ranges, "text/html")
	json, jsonAt := web.Preference(ranges, mediaJSON)
	return at < len(ranges) && html > 0 && (html > json || html == json && at < jsonAt)
}

// protect sets the header fields that keep a page from loading anything from other servers, from
// running scripts that are not files of this server, and from being framed.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
}

// asset serves an embedded file of the pages.
func (h *handler) asset(w http.ResponseWriter, r *http.Request, _ Site) error {
	return serveAsset(w, r, web.PathParameter(r, "file"))
}

// types are the media types of embedded files.
var types = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) error {
	extension := name[strings.LastIndexByte(name, '.')+1:]
	text, err := assets.ReadFile("assets/" + name)
	if mediaType, ok := types["."+extension]; ok && err == nil {
		protect(w.Header())
		return respondTagged(w, r, mediaType, text)
	}
	return &web.UnknownPathError{Paths: "the API reference is at /site/{siteId}/docs"}
}
