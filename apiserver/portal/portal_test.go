package portal

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/errorcode"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// newPortal returns a portal with the site oak, and the site locked, whose access cannot be checked.
func newPortal() http.Handler {
	return New(Config{
		Find: func(_ *http.Request, siteID string) (Site, error) {
			switch siteID {
			case "oak":
				return Site{ID: "oak", BaseURL: "https://host/site/oak"}, nil
			case "locked":
				return Site{}, access.ErrUnavailable
			default: // also one that is hidden
				return Site{}, access.ErrSiteHidden
			}
		},
		ErrorPages: "https://host/errors",
		Log:        slog.New(slog.DiscardHandler),
	})
}

func get(t *testing.T, method, path, accept string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	newPortal().ServeHTTP(w, r)
	return w
}

func TestPortal(t *testing.T) {
	tests := map[string]struct {
		method, path, accept string
		status               int
		mediaType, has       string
	}{
		"the first page":                  {"GET", "/", browser, 200, mediaHTML, "/site/{siteId}"},
		"the first page, for programs":    {"GET", "/", "", 200, mediaJSON, `"sites":"/site/{siteId}"`},
		"a site":                          {"GET", "/site/oak", browser, 200, mediaHTML, `<a href="https://host/site/oak/docs">`},
		"a site with a slash":             {"GET", "/site/oak/", browser, 200, mediaHTML, `https://host/site/oak/fhir`},
		"a site, for programs":            {"GET", "/site/oak", "*/*", 200, mediaJSON, `"openapi":"https://host/site/oak/openapi.json"`},
		"a site, JSON first":              {"GET", "/site/oak", "application/json, text/html;q=0.5", 200, mediaJSON, `"site":"oak"`},
		"the document":                    {"GET", "/site/oak/openapi.json", browser, 200, mediaJSON, `"openapi":"3.1.0","servers":[{"url":"/site/oak"`},
		"the reference":                   {"GET", "/site/oak/docs", browser, 200, mediaHTML, `<a href="/site/oak/docs/operations/readPatient_fhir">`},
		"an operation":                    {"GET", "/site/oak/docs/operations/siteUsage", browser, 200, mediaHTML, `<a href="/site/oak/docs/schemas/SiteUsage">`},
		"an operation, other spelling":    {"GET", "/site/oak/docs/operations/readPatient", browser, 200, mediaHTML, `The path <code>/fhir/patient/{id}</code> has the same meaning.`},
		"a schema":                        {"GET", "/site/oak/docs/schemas/Patient.contact", browser, 200, mediaHTML, `<a href="/site/oak/docs/schemas/HumanName">`},
		"no operation":                    {"GET", "/site/oak/docs/operations/readCat", "", 404, mediaProblem, "unknown_path"},
		"no schema":                       {"GET", "/site/oak/docs/schemas/Cat", browser, 404, mediaHTML, "unknown_path"},
		"a file of the reference":         {"GET", "/site/oak/docs/reference.css", "text/css", 200, "text/css; charset=utf-8", ".reference"},
		"no file":                         {"GET", "/site/oak/docs/none.js", "", 404, mediaProblem, "unknown_path"},
		"a template is no file":           {"GET", "/site/oak/docs/docs.html", "", 404, mediaProblem, "unknown_path"},
		"a folder above":                  {"GET", "/site/oak/docs/..%2Fportal.go", "", 404, mediaProblem, "unknown_path"},
		"no site":                         {"GET", "/site/none", "", 404, mediaProblem, `"type":"https://host/errors/unknown_site"`},
		"no site, in a browser":           {"GET", "/site/none/docs", browser, 404, mediaHTML, "There is no such site."},
		"a site that cannot be found now": {"GET", "/site/locked", "", 503, mediaProblem, `"unavailable"`},
		"another method":                  {"POST", "/site/oak", "", 405, mediaProblem, "method_not_allowed"},
		"another path":                    {"GET", "/site/oak/docs/a/b", "", 404, mediaProblem, "unknown_path"},
		"all codes":                       {"GET", "/errors", browser, 200, mediaHTML, `<a href="/errors/slot_conflict">`},
		"all codes, for programs":         {"GET", "/errors", "", 200, mediaJSON, `"slot_conflict":"The resource is taken at that time."`},
		"a code":                          {"GET", "/errors/slot_conflict", browser, 200, mediaHTML, "Choose another time or resource."},
		"a code, for programs":            {"GET", "/errors/slot_conflict", "", 200, mediaJSON, `"remedy":"Choose another time or resource."`},
		"an invariant":                    {"GET", "/errors/per-1", browser, 200, mediaHTML, "invariant per-1"},
		"no code":                         {"GET", "/errors/nonsense", "", 404, mediaProblem, "unknown_path"},
		"a code with markup":              {"GET", "/errors/%3Cscript%3E", browser, 404, mediaHTML, "unknown_path"},
		"the icon of the pages":           {"GET", "/errors/icon.svg", "", 200, "image/svg+xml", "<svg"},
		"the style sheet of the pages":    {"GET", "/errors/portal.css", "", 200, "text/css; charset=utf-8", "color-scheme"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			res := get(t, test.method, test.path, test.accept)
			body := res.Body.String()
			if res.Code != test.status || res.Header().Get("Content-Type") != test.mediaType || !strings.Contains(body, test.has) {
				t.Errorf("got %d, %s, %.300s; want %d, %s, %s", res.Code, res.Header().Get("Content-Type"), body, test.status, test.mediaType, test.has)
			}
			if res.Header().Get("X-Content-Type-Options") != "nosniff" || res.Header().Get("X-Request-Id") == "" {
				t.Errorf("header %v", res.Header())
			}
			head := get(t, http.MethodHead, test.path, test.accept)
			if test.method == http.MethodGet && (head.Code != test.status || head.Body.String() != "") {
				t.Errorf("HEAD: got %d", head.Code)
			}
		})
	}
}

// TestLandingLinks follows what the landing page links to, as a browser does. The addresses of the
// APIs have no page, so they are no links, and the page says that they need a token.
func TestLandingLinks(t *testing.T) {
	page := get(t, http.MethodGet, "/site/oak", browser).Body.String()
	followed := 0
	for _, found := range regexp.MustCompile(`<a href="https://host([^"]*)"`).FindAllStringSubmatch(page, -1) {
		// The FHIR API and the console, which serve these two without a token, are not part of the portal.
		if path := found[1]; path != "/site/oak/fhir/metadata" && path != "/site/oak/console" {
			followed++
			if res := get(t, http.MethodGet, path, browser); res.Code != http.StatusOK {
				t.Errorf("the link to %s leads to status %d", path, res.Code)
			}
		}
	}
	if followed != 3 {
		t.Errorf("followed %d links, want docs, openapi.json and errors", followed)
	}
	for _, base := range []string{"/fhir", "/ahds/v1"} {
		if want := "<code>https://host/site/oak" + base + "</code>, the start of the addresses of the API; requests need a token"; !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// external matches what makes a browser send a request to another server.
var external = regexp.MustCompile(`(src|href)="(https?:)?//[^"]*"|@import|url\(["']?https?:`)

// TestPagesLoadNothingFromElsewhere holds the pages to their Content-Security-Policy: no inline
// scripts and styles, and nothing from other servers but links that people follow.
func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	for _, path := range []string{"/", "/site/oak", "/site/none", "/site/oak/docs", "/errors", "/errors/timeout", "/site/oak/docs/operations/createPatient_fhir", "/site/oak/docs/schemas/Extension", "/site/oak/docs/reference.js", "/site/oak/docs/reference.css", "/errors/portal.css"} {
		res := get(t, http.MethodGet, path, browser)
		policy := res.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'self'; ") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") || res.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: header %v", path, res.Header())
		}
		body := res.Body.String()
		if strings.Contains(body, "<script>") || strings.Contains(body, "<style") || strings.Contains(body, " style=") || regexp.MustCompile(` on[a-z]+="`).MatchString(body) {
			t.Errorf("%s: the page has inline scripts or styles", path)
		}
		for _, found := range external.FindAllString(body, -1) {
			if !strings.HasPrefix(found, `href="https://github.com/paddock-health/`) && !strings.HasPrefix(found, `href="https://host/`) {
				t.Errorf("%s: %s", path, found)
			}
		}
	}
}

// TestHiddenSites compares responses for a site that does not exist with those for one that is
// hidden: both are access.ErrSiteHidden, so nothing but the path may differ.
func TestHiddenSites(t *testing.T) {
	for _, path := range []string{"", "/openapi.json", "/docs", "/docs/reference.css", "/docs/none.css", "/docs/operations/readPatient", "/docs/operations/none", "/docs/schemas/Patient", "/docs/schemas/none"} {
		for _, accept := range []string{"", browser} {
			var said [2]string
			var headers [2]http.Header
			for i, site := range []string{"hidden", "absent"} {
				res := get(t, http.MethodGet, "/site/"+site+path, accept, "X-Request-Id", "same")
				said[i], headers[i] = res.Body.String(), res.Header()
				if res.Code != http.StatusNotFound {
					t.Errorf("%s: got %d", path, res.Code)
				}
			}
			if said[0] != said[1] || gocmp.Diff(headers[0], headers[1]) != "" {
				t.Errorf("%s: %s, %v; %s, %v", path, said[0], headers[0], said[1], headers[1])
			}
		}
	}
}

func TestDocumentHasAnETag(t *testing.T) {
	res := get(t, http.MethodGet, "/site/oak/openapi.json", "")
	tag := res.Header().Get("ETag")
	again := get(t, http.MethodGet, "/site/oak/openapi.json", "", "If-None-Match", tag)
	if tag == "" || again.Code != http.StatusNotModified || again.Body.String() != "" {
		t.Errorf("tag %q, then %d", tag, again.Code)
	}
	if other := get(t, http.MethodGet, "/site/oak/openapi.json", "", "If-None-Match", "nonsense"); other.Code != http.StatusOK {
		t.Errorf("another tag: got %d", other.Code)
	}
	packed := get(t, http.MethodGet, "/site/oak/openapi.json", "", "Accept-Encoding", "gzip")
	if size := len(packed.Body.String()); packed.Header().Get("Content-Encoding") != "gzip" || size > 300<<10 {
		t.Errorf("%s, %d bytes", packed.Header().Get("Content-Encoding"), size)
	}
}

// TestEveryCodeHasAPage opens the page of each code.
func TestEveryCodeHasAPage(t *testing.T) {
	for _, entry := range errorcode.All() {
		res := get(t, http.MethodGet, "/errors/"+entry.Code, "application/json")
		var page map[string]string
		if err := json.Unmarshal(res.Body.Bytes(), &page); err != nil || page["code"] != entry.Code || page["remedy"] == "" {
			t.Errorf("%s: got %d, %v, %v", entry.Code, res.Code, page, err)
		}
	}
}

// TestDocumentHasPages compares the paths of the OpenAPI document outside of the APIs with those of
// the portal, and the console, which is another package's.
func TestDocumentHasPages(t *testing.T) {
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(get(t, "GET", "/site/oak/openapi.json", "").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	described := []string{}
	for path := range document.Paths {
		if !strings.HasPrefix(path, "/fhir") && !strings.HasPrefix(path, "/ahds/") {
			described = append(described, path)
		}
	}
	served := []string{"/console"}
	for path := range (&handler{}).paths() {
		below, ofSite := strings.CutPrefix(path, "/site/{siteId}")
		if ofSite && !strings.HasPrefix(below, "/docs/") { // the other pages and the files of the API reference
			served = append(served, cmp.Or(below, "/"))
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := gocmp.Diff(served, described); diff != "" {
		t.Errorf("(-served +described):\n%s", diff)
	}
}
