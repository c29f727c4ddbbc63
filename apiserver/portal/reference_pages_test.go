package portal

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// maxReferencePage is the size in bytes up to which a browser shows a page of the API reference within
// a fraction of a second.
const maxReferencePage = 200 << 10

// TestReferenceIsComplete opens the page of each operation and schema of the OpenAPI document, and those
// to which these and the first page have links.
func TestReferenceIsComplete(t *testing.T) {
	portal := newPortal()
	open := func(path string) string {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		w := httptest.NewRecorder()
		portal.ServeHTTP(w, r)
		if body := w.Body.String(); w.Code == http.StatusOK && len(body) <= maxReferencePage && strings.Contains(body, "</html>") {
			return body
		}
		t.Errorf("%s: got %d with %d bytes", path, w.Code, w.Body.Len())
		return ""
	}
	var document struct {
		Paths      map[string]map[string]struct{ OperationID, Summary string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(get(t, "GET", "/site/oak/openapi.json", "").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	const docs = "/site/oak/docs"
	texts := map[string]string{docs: open(docs)}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			page := docs + "/operations/" + operation.OperationID
			texts[page] = open(page)
			if !strings.Contains(texts[page], operation.Summary) || !strings.Contains(texts[page], "<code>"+path+"</code>") && !strings.Contains(texts[page], "<code>"+strings.ToUpper(method)+" "+path+"</code>") {
				t.Errorf("%s does not show %s %s", page, method, path)
			}
		}
	}
	for name := range document.Components.Schemas {
		texts[docs+"/schemas/"+name] = open(docs + "/schemas/" + name)
	}
	link := regexp.MustCompile(`href="(/site/oak/docs/(?:operations|schemas)/[^"]+)"`)
	listed := map[string]bool{}
	for path, text := range texts {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if texts[found[1]] == "" {
				t.Errorf("%s has a link to %s, which is no page", path, found[1])
			}
			listed[found[1]] = listed[found[1]] || path == docs
		}
	}
	for name := range document.Components.Schemas {
		if !listed[docs+"/schemas/"+name] {
			t.Errorf("the first page does not list the schema %s", name)
		}
	}
	for path, text := range texts {
		if strings.Contains(path, "/operations/") && !strings.HasSuffix(path, "_fhir") && text == texts[path+"_fhir"] {
			continue // the other spelling is listed
		}
		if strings.Contains(path, "/operations/") && !listed[path] {
			t.Errorf("the first page does not list %s", path)
		}
	}
}
