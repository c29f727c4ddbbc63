package siteapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func client(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Config{BaseURL: server.URL + "/site/oak/", Token: func(context.Context) (string, error) { return "the-token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestListReadsAllPages(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer the-token" {
			t.Errorf("Authorization %q", got)
		}
		if r.URL.Path != "/site/oak/ahds/v1/things" || r.URL.Query().Get("kind") != "a b" || r.URL.Query().Get("pageSize") != "100" {
			t.Errorf("request for %s", r.URL)
		}
		fmt.Fprintf(w, `{"data":["page %s"],"meta":{"totalPages":3}}`, r.URL.Query().Get("page"))
	})
	got, err := List[string](t.Context(), c, "things", url.Values{"kind": {"a b"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"page 0", "page 1", "page 2"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPurgeWithoutCompartment checks that a purge of a record only says so, whatever the spelling of the
// type.
func TestPurgeWithoutCompartment(t *testing.T) {
	for _, recordType := range []string{"Patient", "patient", "Device"} {
		sent := ""
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			sent = r.URL.RawQuery
			fmt.Fprint(w, `{"resourceType":"Parameters"}`)
		})
		if _, err := c.Purge(t.Context(), recordType, "rex", false); err != nil || sent != "compartment=false" {
			t.Errorf("%s: the query is %q, error %v, want compartment=false", recordType, sent, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, want string
	}{
		"a problem":   {403, `{"code":"permission_denied","detail":"no right to list slots"}`, "the site responded with 403 Forbidden (permission_denied): no right to list slots"},
		"fields":      {400, `{"code":"invalid_request","detail":"1 invalid field","errors":[{"parameter":"from","detail":"not a time"},{"pointer":"/to","detail":"before from"}]}`, "the site responded with 400 Bad Request (invalid_request): from: not a time; /to: before from"},
		"an outcome":  {400, `{"resourceType":"OperationOutcome","issue":[{"diagnostics":"entity: not a reference","details":{"coding":[{"code":"invalid_value"}]}}]}`, "the site responded with 400 Bad Request (invalid_value): entity: not a reference"},
		"no document": {502, `<html>`, "the site responded with 502 Bad Gateway"},
		"a redirect":  {302, ``, "the site responded with 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			})
			err := c.AHDS(t.Context(), http.MethodGet, "things", nil, nil, nil)
			var failed *Error
			if !errors.As(err, &failed) || failed.Status != test.status || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAuditEvents(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/fhir+ndjson" || r.URL.Path != "/site/oak/fhir/AuditEvent" {
			t.Errorf("%s of %s", r.Header.Get("Accept"), r.URL)
		}
		fmt.Fprint(w, "{\"id\":\"2\"}\n{\"id\":\"1\"}\n")
	})
	got, err := c.AuditEvents(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]json.RawMessage{json.RawMessage(`{"id":"2"}`), json.RawMessage(`{"id":"1"}`)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCertificateAuthoritiesMustBeCertificates(t *testing.T) {
	if _, err := New(Config{CertificateAuthorities: []byte("none")}); err == nil {
		t.Error("New accepted a file without certificates")
	}
}
