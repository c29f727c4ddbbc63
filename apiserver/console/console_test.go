package console

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// next answers with a status that the console never uses.
var next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })

func find(siteID string) (Site, bool) {
	return Site{TokenOrigins: []string{"https://login.example.org"}}, siteID == "oak" || siteID == "console"
}

func serve(method, path, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	New(find, next).ServeHTTP(w, r)
	return w
}

const browser = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, accept string
		status               int
		// assets is the prefix of the page's assets.
		assets string
	}{
		"the start":                      {path: "/console", status: 200, assets: "/console/assets/"},
		"below the start":                {path: "/console/any", status: 200, assets: "/console/assets/"},
		"a site":                         {path: "/site/oak/console", status: 200, assets: "/site/oak/console/assets/"},
		"a page of a site":               {path: "/site/oak/console/record/Patient/rex", status: 200, assets: "/site/oak/console/assets/"},
		"a site whose id is console":     {path: "/site/console/console/search", status: 200, assets: "/site/console/console/assets/"},
		"an unknown site":                {path: "/site/elm/console", status: 404, assets: "/site/elm/console/assets/"},
		"markup for a siteID":            {path: `/site/%22%3E%3Cscript%3E&quot;/console`, status: 404, assets: "/site/%22%3E%3Cscript%3E&amp;quot%3B/console/assets/"},
		"a request for JSON":             {path: "/site/oak/console", accept: "application/json", status: http.StatusTeapot},
		"a request for any type":         {path: "/console", accept: "*/*", status: http.StatusTeapot},
		"a write":                        {method: "POST", path: "/console", status: http.StatusTeapot},
		"an API":                         {path: "/site/oak/fhir/Patient", status: http.StatusTeapot},
		"a record whose id is console":   {path: "/site/oak/fhir/console", status: http.StatusTeapot},
		"a path that only begins so":     {path: "/consoles", status: http.StatusTeapot},
		"no siteID":                      {path: "/site//console", status: http.StatusTeapot},
		"an asset that does not exist":   {path: "/console/assets/none.js", status: http.StatusTeapot},
		"an asset as part of a traverse": {path: "/console/assets/../index.html", status: http.StatusTeapot},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(or(test.method, "GET"), test.path, or(test.accept, browser))
			if w.Code != test.status {
				t.Fatalf("status %d, want %d", w.Code, test.status)
			}
			if test.assets == "" {
				return
			}
			links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1)
			if len(links) < 3 {
				t.Fatalf("the page has %d links, want script, style and icon: %s", len(links), w.Body)
			}
			for _, link := range links {
				if !strings.HasPrefix(link[1], test.assets) {
					t.Errorf("link %s, want one below %s", link[1], test.assets)
				}
			}
		})
	}
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func TestHeadersOfPages(t *testing.T) {
	header := serve("GET", "/site/oak/console", browser).Header()
	for name, want := range map[string]string{
		"Cache-Control":          "no-store",
		"Referrer-Policy":        "no-referrer",
		"X-Content-Type-Options": "nosniff",
		"Vary":                   "Accept",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'self';", "frame-ancestors 'none'", "connect-src 'self' https://login.example.org;"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not have %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy %q allows unsafe sources", policy)
	}
}

// TestHiddenSites compares a site that find hides with one that does not exist.
func TestHiddenSites(t *testing.T) {
	hidden, unknown := serve("GET", "/site/hidden/console", browser), serve("GET", "/site/unknown/console", browser)
	if got := strings.ReplaceAll(hidden.Body.String(), "hidden", "unknown"); got != unknown.Body.String() || hidden.Code != unknown.Code {
		t.Errorf("hidden: %d %s\nunknown: %d %s", hidden.Code, got, unknown.Code, unknown.Body)
	}
	if policy := hidden.Header().Get("Content-Security-Policy"); strings.Contains(policy, "login.example.org") {
		t.Errorf("the policy names the issuer of a hidden site: %s", policy)
	}
}

func TestAssets(t *testing.T) {
	script := regexp.MustCompile(`src="([^"]*\.js)"`).FindStringSubmatch(serve("GET", "/console", browser).Body.String())[1]
	plain := serve("GET", script, "*/*")
	if plain.Code != http.StatusOK || !strings.HasPrefix(plain.Header().Get("Content-Type"), "text/javascript") {
		t.Fatalf("status %d, type %s", plain.Code, plain.Header().Get("Content-Type"))
	}
	if caching := plain.Header().Get("Cache-Control"); !strings.Contains(caching, "immutable") {
		t.Errorf("Cache-Control %s", caching)
	}
	r := httptest.NewRequest(http.MethodGet, "/site/any"+script, nil)
	r.Header.Set("Accept-Encoding", "gzip, br")
	zipped := httptest.NewRecorder()
	New(find, next).ServeHTTP(zipped, r)
	reader, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil || string(content) != plain.Body.String() {
		t.Errorf("the compressed asset differs (%v)", err)
	}
}
