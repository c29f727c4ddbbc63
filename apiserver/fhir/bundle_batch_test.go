package fhir_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// bundleOf returns a Bundle with the entries.
func bundleOf(kind string, entries ...string) string {
	list := ""
	if len(entries) > 0 {
		list = `,"entry":[` + strings.Join(entries, ",") + `]`
	}
	return `{"resourceType":"Bundle","type":"` + kind + `"` + list + `}`
}

// asks makes an entry of a method, a url, a resource (none if empty), and more
// members of the request.
func asks(method, url, resource string, more ...string) string {
	if resource != "" {
		resource = `"resource":` + resource + `,`
	}
	return `{` + resource + `"request":{"method":"` + method + `","url":"` + url + `"` + strings.Join(append([]string{""}, more...), ",") + `}}`
}

// binary returns a Binary with a patch, the resource of an entry.
func binary(patch string) string {
	return `{"resourceType":"Binary","contentType":"application/json-patch+json","data":"` + base64.StdEncoding.EncodeToString([]byte(patch)) + `"}`
}

// expectValid validates a resource that the server has made.
func expectValid(a answer) {
	GinkgoHelper()
	kind := a.json()["resourceType"].(string)
	_, err := r4.Read([]byte(a.body), r4.Options{Type: kind})
	Expect(err).NotTo(HaveOccurred(), a.body)
}

// statuses of the entries of a response.
func statuses(d document) []string {
	var found []string
	for _, entry := range d.entries() {
		found = append(found, entry.at("response", "status").(string))
	}
	return found
}

// togetherStore makes creates wait until wanted of them are in progress. It panics after that for an
// Organization.
type togetherStore struct {
	store.Restricted
	wanted  int32
	count   atomic.Int32
	arrived chan struct{}
}

func (t *togetherStore) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if ops[0].Method == store.MethodPost {
		if t.count.Add(1) == t.wanted {
			close(t.arrived)
		}
		select {
		case <-t.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if ops[0].Key.Type == "Organization" {
		panic("planted")
	}
	return t.Restricted.Write(ctx, ops)
}

var _ = Describe("A batch", func() {
	It("is processed in FHIR's order and answered in its own", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/old", luna)
		a := s.do("POST", "", bundleOf("batch",
			asks("GET", "Patient/rex", ""),
			asks("PUT", "Patient/rex", `{"resourceType":"Patient","id":"rex","active":true}`),
			asks("PATCH", "Patient/rex", binary(`[{"op":"replace","path":"/active","value":false}]`)),
			asks("POST", "Patient", tagged("1", "")),
			asks("GET", "Patient?identifier=urn:chip|1", ""),
			asks("DELETE", "Patient/old", ""),
			asks("GET", "Patient/old", ""),
			asks("HEAD", "Patient/rex", ""),
			asks("HEAD", "Patient/old", ""),
		), sendFHIR, acceptFHIR)
		Expect(a.status).To(Equal(http.StatusOK), a.body)
		Expect(a.header.Get("Content-Type")).To(Equal("application/fhir+json; charset=utf-8"))
		expectValid(a)
		answered := a.json()
		Expect(answered).To(HaveKeyWithValue("type", "batch-response"))
		Expect(statuses(answered)).To(Equal([]string{
			"200 OK", "201 Created", "200 OK", "201 Created", "200 OK", "200 OK", "410 Gone", "200 OK", "410 Gone",
		}))
		entries := answered.entries()
		By("a patch behind the update that it follows, and the read behind both")
		Expect(entries[0].at("resource", "active")).To(BeFalse())
		Expect(entries[2].at("resource", "meta", "versionId")).To(Equal("2"))
		Expect(entries[1].at("resource", "active")).To(BeTrue())
		Expect(entries[1].at("response")).To(Equal(map[string]any{
			"status": "201 Created", "location": s.base + "/Patient/rex/_history/1", "etag": `W/"1"`,
			"lastModified": entries[1].at("resource", "meta", "lastUpdated"),
		}))
		Expect(s.do("GET", entries[3].at("response", "location").(string), "").status).To(Equal(http.StatusOK))
		Expect(entries[4].at("resource", "total")).To(BeEquivalentTo(1))
		Expect(entries[5].at("response", "outcome", "issue", 0, "details", "coding", 0, "code")).To(Equal("deleted"))
		Expect(entries[6]).NotTo(HaveKey("resource"))
		Expect(entries[6].at("response", "outcome", "issue", 0, "details", "coding", 0, "code")).To(Equal("deleted"))
		Expect(entries[7]).NotTo(HaveKey("resource"))
		Expect(entries[7].at("response", "etag")).To(Equal(`W/"2"`))
		Expect(entries[8]).NotTo(HaveKey("resource"))
		Expect(entries[8].at("response")).NotTo(HaveKey("outcome"))
	})

	It("lists so many faults and no more", func(ctx context.Context) {
		s := newSite(ctx)
		unknown := strings.Repeat(`"odd":0,`, 200)
		for i := range 200 {
			unknown = strings.Replace(unknown, `"odd"`, fmt.Sprintf(`"odd%d"`, i), 1)
		}
		for _, sent := range []string{
			`{"resourceType":"Bundle",` + unknown + `"type":"batch"}`,
			`{"resourceType":"Bundle","type":"transaction","entry":[{` + unknown + `"fullUrl":"urn:x"}]}`,
		} {
			a := s.do("POST", "", sent)
			Expect(a.status).To(Equal(http.StatusBadRequest))
			Expect(a.json()["issue"]).To(HaveLen(50))
		}
		inEntries := s.do("POST", "", bundleOf("batch", `{`+unknown+`"request":{`+unknown+`"method":"GET","url":"Patient/a"}}`))
		Expect(inEntries.json().entries()[0].at("response", "outcome", "issue")).To(HaveLen(50))
	})

	It("lets each entry fail by itself, and says why", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("POST", "/", bundleOf("batch",
			asks("PUT", "patient/rex", luna),
			asks("POST", "patient", `{"resourceType":"Person"}`),
			asks("POST", "observation", `{"resourceType":"Observation"}`),
			asks("GET", "patient/never", ""),
			asks("GET", "patient?colour=brown", ""),
			asks("PUT", "patient/_search", luna),
			asks("PATCH", "patient/rex", luna),
			asks("PATCH", "patient/rex", binary(`[{"op":"test","path":"/id","value":"x"}]`)),
			asks("POST", "patient", ""),
			asks("PUT", "patient/max", ""),
			asks("FETCH", "patient/rex", ""),
			asks("POST", "patient", luna, `"ifNonExist":"identifier=1"`),
			`{"resource":`+luna+`}`,
			`5`,
		))
		Expect(a.status).To(Equal(http.StatusOK))
		expectValid(a)
		Expect(statuses(a.json())).To(Equal([]string{
			"201 Created", "400 Bad Request", "404 Not Found", "404 Not Found", "400 Bad Request", "405 Method Not Allowed",
			"400 Bad Request", "409 Conflict", "400 Bad Request", "400 Bad Request", "400 Bad Request", "400 Bad Request",
			"400 Bad Request", "400 Bad Request",
		}))
		code := func(i int) any {
			return a.json().entries()[i].at("response", "outcome", "issue", 0, "details", "coding", 0, "code")
		}
		Expect(code(1)).To(Equal("resource_mismatch"))
		Expect(code(4)).To(Equal("invalid_query"))
		Expect(code(7)).To(Equal("patch_test_failed"))
		Expect(code(8)).To(Equal("unparseable_resource"))
		for i := 9; i < 14; i++ {
			Expect(code(i)).To(Equal("invalid_bundle"), "%d", i)
		}
		Expect(a.json().entries()[10].at("response", "outcome", "issue", 0, "expression", 0)).To(Equal("Bundle.entry[10].request.method"))
	})

	It("refuses an entry that names a record and has criteria too", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", luna)
		a := s.do("POST", "/", bundleOf("batch",
			asks("DELETE", "Patient/rex?identifier=urn:chip|1", ""),
			asks("PUT", "Patient/rex?identifier=urn:chip|1", `{"resourceType":"Patient"}`),
			asks("PATCH", "Patient/rex?identifier=urn:chip|1", binary(`[{"op":"replace","path":"/active","value":false}]`)),
			asks("POST", "Patient?identifier=urn:chip|1", luna),
		), with("Prefer", "handling=lenient")).json()
		for _, entry := range a.entries() {
			Expect(entry.at("response", "status")).To(Equal("400 Bad Request"))
			Expect(entry.at("response", "outcome", "issue", 0, "diagnostics")).To(ContainSubstring(`"identifier"`))
		}
		Expect(s.do("GET", "/_history", "", acceptFHIR).json()["total"]).To(BeEquivalentTo(1))
	})

	It("honours the conditions of each entry", func(ctx context.Context) {
		s := newSite(ctx)
		first := s.do("PUT", "/patient/rex", tagged("1", "")).json()
		a := s.do("POST", "/", bundleOf("batch",
			asks("GET", "Patient/rex", "", `"ifNoneMatch":"W/\"1\""`),
			asks("GET", "Patient/rex", "", `"ifModifiedSince":"`+first.at("meta", "lastUpdated").(string)+`"`),
			asks("GET", "Patient/rex", "", `"ifModifiedSince":"1999-12-31T23:59:59Z"`),
			asks("GET", "Patient/rex", "", `"ifModifiedSince":"yesterday"`),
			asks("PUT", "Patient/rex", tagged("2", `,"id":"rex"`), `"ifMatch":"W/\"7\""`),
			asks("PUT", "Patient/rex", tagged("2", `,"id":"rex"`), `"ifNoneMatch":"*"`),
			asks("POST", "Patient", tagged("1", ""), `"ifNoneExist":"identifier=urn:chip|1"`),
			asks("POST", "Patient", tagged("3", ""), `"ifNoneExist":"identifier=urn:chip|3"`),
			asks("DELETE", "Patient?identifier=urn:chip|9", ""),
			asks("PUT", "Patient?identifier=urn:chip|8", tagged("8", "")),
		))
		Expect(statuses(a.json())).To(Equal([]string{
			"304 Not Modified", "304 Not Modified", "200 OK", "400 Bad Request", "412 Precondition Failed", "412 Precondition Failed",
			"200 OK", "201 Created", "200 OK", "201 Created",
		}))
		Expect(a.json().entries()[6].at("response", "location")).To(Equal(s.base + "/Patient/rex/_history/1"))
	})

	It("asks for the rights that each entry needs", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", luna)
		a := s.do("POST", "/", bundleOf("batch",
			asks("GET", "patient/rex", ""),
			asks("POST", "patient", luna),
			asks("PUT", "patient/new", luna),
			asks("PUT", "patient/rex", luna),
		), with("X-Caller", "no-create"))
		Expect(statuses(a.json())).To(Equal([]string{"200 OK", "403 Forbidden", "403 Forbidden", "200 OK"}))
		Expect(s.do("GET", "/patient", "").json().ids()).To(Equal([]string{"rex"}))
	})

	It("takes every interaction there is, and urls as they may be written", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/practitioner-role/a", `{"resourceType":"PractitionerRole"}`)
		other := newSite(ctx)
		other.put("/practitioner-role/hidden", `{"resourceType":"PractitionerRole"}`)
		outside := "../../" + path.Base(strings.TrimSuffix(other.base, "/fhir")) + "/fhir/practitioner-role/hidden"
		for url, want := range map[string]string{
			"PractitionerRole/a":                            "200 OK",
			"practitioner-role/a":                           "200 OK",
			"/practitioner-role/A":                          "200 OK",
			s.base + "/practitioner-role/a":                 "200 OK",
			"practitioner-role/%61":                         "200 OK",
			"practitioner-role/a/_history/1":                "200 OK",
			"practitioner-role/a/history":                   "200 OK",
			"practitioner-role/_history":                    "200 OK",
			"_history?_count=1":                             "200 OK",
			"metadata":                                      "200 OK",
			"practitioner-role?_id=a&_count=1":              "200 OK",
			other.base + "/practitioner-role/hidden":        "400 Bad Request",
			"https://elsewhere.example/PractitionerRole/a":  "400 Bad Request",
			"//elsewhere.example/PractitionerRole/a":        "400 Bad Request",
			"urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a": "400 Bad Request",
			"PractitionerRole/a#b":                          "400 Bad Request",
			"%zz":                                           "400 Bad Request",
			"/":                                             "400 Bad Request",
			"?_type=Patient":                                "200 OK",
			outside:                                         "404 Not Found",
			"..%2f..%2fx":                                   "404 Not Found",
			"practitioner-role/a/b":                         "404 Not Found",
			"practitioner-role/hidden":                      "404 Not Found",
		} {
			a := s.do("POST", "/", bundleOf("batch", asks("GET", url, "")))
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(statuses(a.json())).To(Equal([]string{want}), url)
		}
		for _, url := range []string{"PractitionerRole/$validate", "practitioner-role/a/$validate"} {
			a := s.do("POST", "/", bundleOf("batch", asks("POST", url, `{"resourceType":"PractitionerRole"}`)))
			Expect(statuses(a.json())).To(Equal([]string{"200 OK"}), url)
		}
		a := s.do("POST", "/", bundleOf("batch", asks("POST", "practitioner-role/_search?_id=a", "")))
		Expect(a.json().entries()[0].at("resource", "total")).To(BeEquivalentTo(1))
		nested := s.do("POST", "/", bundleOf("batch", asks("POST", s.base+"/", bundleOf("batch"))))
		Expect(statuses(nested.json())).To(Equal([]string{"400 Bad Request"}))
	})

	It("answers as Prefer and the dialect say", func(ctx context.Context) {
		s := newSite(ctx)
		create, remove := asks("POST", "patient", luna), asks("DELETE", "patient/never", "")
		minimal := s.do("POST", "/", bundleOf("batch", create), with("Prefer", "return=minimal")).json().entries()[0]
		Expect(minimal).NotTo(HaveKey("resource"))
		Expect(minimal.at("response", "location")).NotTo(BeEmpty())
		said := s.do("POST", "/", bundleOf("batch", create), with("Prefer", "return=OperationOutcome")).json().entries()[0]
		Expect(said.at("response", "outcome", "issue", 0, "details", "coding", 0, "code")).To(Equal("created"))
		byContract := s.do("POST", "/", bundleOf("batch", remove))
		Expect(byContract.header.Get("Content-Type")).To(Equal("application/json"))
		expectValid(byContract)
		pretty := s.do("POST", "/?_pretty=true", bundleOf("batch", create))
		Expect(pretty.body).To(HavePrefix("{\n  \"resourceType\": \"Bundle\""))
		noID := asks("PUT", "Patient/x", luna)
		Expect(statuses(s.do("POST", "/", bundleOf("batch", noID), sendFHIR).json())).To(Equal([]string{"400 Bad Request"}))
		Expect(statuses(s.do("POST", "/", bundleOf("batch", noID)).json())).To(Equal([]string{"201 Created"}))
	})

	It("may be empty, and must be a batch or a transaction", func(ctx context.Context) {
		s := newSite(ctx, func(site *fhir.Endpoint) { site.Limits.MaxBundleEntries = new(int32(3)) })
		empty := s.do("POST", "", bundleOf("batch"))
		Expect(empty.body).To(Equal(`{"resourceType":"Bundle","type":"batch-response"}`))
		for body, code := range map[string]string{
			bundleOf("collection"):                                         "invalid_bundle",
			bundleOf("history"):                                            "invalid_bundle",
			`{"resourceType":"Bundle"}`:                                    "invalid_bundle",
			`{"resourceType":"Bundle","type":"batch","entry":{}}`:          "invalid_bundle",
			`{"resourceType":"Bundle","type":"batch","entries":[]}`:        "invalid_bundle",
			`{"resourceType":"Bundle","type":"batch","implicitRules":"x"}`: "invalid_bundle",
			luna:                        "resource_mismatch",
			`[]`:                        "unparseable_resource",
			``:                          "unparseable_resource",
			`{"resourceType":"Bundle",`: "unparseable_resource",
			`{"resourceType":"Bundle","type":"batch"}x`:                                          "unparseable_resource",
			`{"resourceType":"Bundle","type":"batch","type":"batch"}`:                            "unparseable_resource",
			bundleOf("batch", asks("POST", "Patient", `{"resourceType":"Patient","a":1,"a":2}`)): "unparseable_resource",
		} {
			refused := s.do("POST", "", body)
			Expect(refused.status).To(Equal(http.StatusBadRequest), body)
			Expect(refused.code()).To(Equal(code), body)
		}
		read := asks("GET", "Patient", "")
		Expect(s.do("POST", "", bundleOf("batch", read, read, read)).status).To(Equal(http.StatusOK))
		Expect(s.do("POST", "", bundleOf("batch", read, read, read, read)).status).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(s.do("POST", "", `<Bundle/>`, with("Content-Type", "application/fhir+xml")).status).To(Equal(http.StatusUnsupportedMediaType))
		Expect(s.do("POST", "?_count=1", bundleOf("batch")).code()).To(Equal("invalid_query"))
	})

	It("creates records concurrently, and each create fails by itself", func(ctx context.Context) {
		together := &togetherStore{wanted: 4, arrived: make(chan struct{})}
		s := newSite(ctx, func(site *fhir.Endpoint) {
			together.Restricted = site.Store
			site.Store = together
		})
		a := s.do("POST", "", bundleOf("batch",
			asks("PUT", "Patient/rex", `{"resourceType":"Patient","id":"rex"}`),
			asks("POST", "Patient", tagged("1", "")),
			asks("POST", "Patient", `{"resourceType":"Person"}`),
			asks("POST", "Patient", tagged("2", "")),
			asks("POST", "Practitioner", `{"resourceType":"Practitioner"}`),
			asks("POST", "Organization", `{"resourceType":"Organization","name":"panic"}`),
		), sendFHIR, acceptFHIR)
		Expect(statuses(a.json())).To(Equal([]string{
			"201 Created", "201 Created", "400 Bad Request", "201 Created", "201 Created", "500 Internal Server Error",
		}))
		for i, value := range map[int]string{1: "1", 3: "2"} {
			Expect(a.json().entries()[i].at("resource", "identifier", 0, "value")).To(Equal(value))
		}
	})

	It("processes conditional creates one after the other", func(ctx context.Context) {
		s := newSite(ctx)
		var entries, want []string
		for i := range 20 {
			entries = append(entries, asks("POST", "Patient", tagged("1", fmt.Sprintf(`,"active":%t`, i == 0)), `"ifNoneExist":"identifier=urn:chip|1"`))
			want = append(want, "200 OK")
		}
		want[0] = "201 Created"
		a := s.do("POST", "", bundleOf("batch", entries...)).json()
		Expect(statuses(a)).To(Equal(want))
		Expect(a.entries()[19].at("resource", "active")).To(BeTrue())
	})

	It("of several hundred entries is answered entry by entry", func(ctx context.Context) {
		s := newSite(ctx)
		var entries []string
		for i := range 300 {
			entries = append(entries, asks("PUT", fmt.Sprintf("patient/p%d", i), luna))
		}
		a := s.do("POST", "", bundleOf("batch", entries...), with("Prefer", "return=minimal"))
		Expect(statuses(a.json())).To(HaveLen(300))
		Expect(statuses(a.json())).To(HaveEach("201 Created"))
		Expect(s.do("GET", "/patient?_count=0", "").json()["total"]).To(BeEquivalentTo(300))
	})
})
