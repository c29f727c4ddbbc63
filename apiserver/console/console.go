// Package console serves the web console of Sites: a single-page application that is embedded in
// the program. The application is a client of the documented APIs; this package knows no records,
// tokens or rights.
package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// dist is what `make console` builds from app.
//
//go:embed all:dist
var dist embed.FS

// Site has the settings of a Site that its web console needs.
type Site struct {
	// TokenOrigins are the origins of the token endpoints of the issuers with which people can sign
	// in to the console. The console's pages may connect to these origins in addition to their own.
	TokenOrigins []string
}

// Find returns the Site with a siteID. It returns false if the Site does not exist or is hidden.
type Find func(siteID string) (Site, bool)

type handler struct {
	find   Find
	next   http.Handler
	page   []byte
	assets map[string]asset
}

// asset is a file whose name has the hash of its content.
type asset struct {
	contentType     string
	content, zipped []byte
}

// New returns a handler that serves the web console to GET and HEAD requests for /console,
// /site/{id}/console and the paths below both. It passes all other requests to next. It also passes
// requests for an unknown path below assets, and for a page unless they accept text/html. A page is
// any other path but that of an asset.
func New(find Find, next http.Handler) http.Handler {
	h := &handler{find: find, next: next, assets: map[string]asset{}}
	files, err := fs.Sub(dist, "dist")
	if err == nil {
		err = h.load(files)
	}
	if err != nil {
		panic(fmt.Sprintf("read the embedded files of the console: %v", err)) // a defect of the build
	}
	return h
}

// load reads the page and the assets.
func (h *handler) load(files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if name == "index.html" {
			h.page = content
			return nil
		}
		zipped, err := compress(content)
		h.assets[name] = asset{contentType: mime.TypeByExtension(path.Ext(name)), content: content, zipped: zipped}
		return err
	})
}

func compress(content []byte) ([]byte, error) {
	var zipped bytes.Buffer
	writer, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	err = writer.Close()
	return zipped.Bytes(), err
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	siteID, below, ok := split(r.URL.Path)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.next.ServeHTTP(w, r)
		return
	}
	if found, isAsset := h.assets[below]; isAsset {
		h.serveAsset(w, r, found)
		return
	}
	if strings.HasPrefix(below, "assets/") || !acceptsHTML(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	h.servePage(w, r, siteID)
}

// split returns the siteID of a path of the console, and what follows /console/. The siteID of
// /console and below is empty. It reports whether the path is the console's.
func split(urlPath string) (siteID, below string, ok bool) {
	if ofSite, found := strings.CutPrefix(urlPath, "/site/"); found {
		siteID, urlPath, found = strings.Cut(ofSite, "/")
		if !found || siteID == "" {
			return "", "", false
		}
		urlPath = "/" + urlPath
	}
	if urlPath == "/console" {
		return siteID, "", true
	}
	below, ok = strings.CutPrefix(urlPath, "/console/")
	return siteID, below, ok
}

// acceptsHTML reports whether a request is a browser's: it accepts text/html by name. Other clients
// usually accept any type, or JSON.
func acceptsHTML(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(accept string) bool { return strings.Contains(accept, "text/html") })
}

// serveAsset serves a file of the application. The file is the same for each siteID, also for one that
// does not exist, because the hosts of some Sites lead only to paths below /site/{id}.
func (h *handler) serveAsset(w http.ResponseWriter, r *http.Request, a asset) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Vary", "Accept-Encoding")
	content := a.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = a.zipped
	}
	write(w, r, http.StatusOK, content)
}

// servePage serves the application. A hidden Site and a Site that does not exist get the same page
// with the status 404. The page is complete, so that people can sign in to a hidden Site with a token.
func (h *handler) servePage(w http.ResponseWriter, r *http.Request, siteID string) {
	status, prefix := http.StatusOK, "/console/"
	var site Site
	if siteID != "" {
		prefix = "/site/" + html.EscapeString(url.PathEscape(siteID)) + "/console/"
		if found, ok := h.find(siteID); ok {
			site = found
		} else {
			status = http.StatusNotFound
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Vary", "Accept")
	// Photos are in records, as data. Everything else comes from this server.
	header.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; connect-src "+
		strings.Join(append([]string{"'self'"}, site.TokenOrigins...), " ")+
		"; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	write(w, r, status, bytes.ReplaceAll(h.page, []byte(`"./assets/`), []byte(`"`+prefix+`assets/`)))
}

func write(w http.ResponseWriter, r *http.Request, status int, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client may be gone
	}
}
