package fhir_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

var _ = Describe("Bodies", func() {
	It("come back byte for byte: HL7's examples of all types", func(ctx context.Context) {
		s := newSite(ctx)
		path, err := examples.Fetch(ctx, "../../bin")
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, t := range r4.Types {
			names = append(names, t.Name)
		}
		all, err := examples.Load(path, names...)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(82))
		for _, example := range all {
			path := "/" + example.Type + "/" + example.ID
			put := s.do("PUT", path, string(example.JSON), sendFHIR)
			Expect(put.status).To(Equal(http.StatusCreated), "%s: %s", path, put.body)
			got := s.do("GET", path, "")
			Expect(got.body).To(Equal(put.body))
			Expect(serverMeta.ReplaceAllString(got.body, "")).To(Equal(clientMeta.ReplaceAllString(string(example.JSON), "")), path)
		}
	})

	DescribeTable("that are refused", func(ctx context.Context, body string, status int, code string, options ...option) {
		s := newSite(ctx, func(s *fhir.Endpoint) { s.Limits.MaxBodySize = resource.NewQuantity(1<<10, resource.BinarySI) })
		for _, method := range []string{"POST /patient", "PUT /patient/a"} {
			method, path, _ := strings.Cut(method, " ")
			a := s.do(method, path, body, options...)
			Expect(a.status).To(Equal(status), a.body)
			Expect(a.code()).To(Equal(code))
		}
		Expect(s.do("GET", "/patient?_summary=count", "").json()).To(HaveKeyWithValue("total", BeEquivalentTo(0)))
	},
		Entry("nothing", "", 400, "unparseable_resource"),
		Entry("not JSON", "{", 400, "unparseable_resource"),
		Entry("not an object", "[]", 400, "not_an_object"),
		Entry("no resourceType", "{}", 400, "missing_element"),
		Entry("another type", `{"resourceType":"Person"}`, 400, "resource_mismatch"),
		Entry("a doubled name", `{"resourceType":"Patient","active":true,"active":true}`, 400, "duplicate_element"),
		Entry("too deep", `{"resourceType":"Patient"`+strings.Repeat(`,"extension":[{"url":"u"`, 32)+strings.Repeat("}]", 32)+"}", 400, "too_deep"),
		Entry("too large", `{"resourceType":"Patient","a":"`+strings.Repeat("x", 1<<10)+`"}`, 413, "too_large"),
		Entry("too large without saying so", `{"resourceType":"Patient","a":"`+strings.Repeat("x", 1<<10)+`"}`, 413, "too_large", option(withoutLength)),
		Entry("too large when inflated", zipped(`{"resourceType":"Patient","a":"`+strings.Repeat("x", 1<<16)+`"}`), 413, "too_large", with("Content-Encoding", "gzip")),
		Entry("gzip that is none", luna, 400, "unparseable_resource", with("Content-Encoding", "gzip")),
		Entry("gzip cut off", zipped(luna)[:20], 400, "unparseable_resource", with("Content-Encoding", "gzip")),
		Entry("another encoding", luna, 415, "unsupported_media_type", with("Content-Encoding", "br")),
		Entry("XML", "<Patient/>", 415, "unsupported_media_type", with("Content-Type", "application/fhir+xml")),
		Entry("a form", "a=b", 415, "unsupported_media_type", with("Content-Type", "application/x-www-form-urlencoded")),
		Entry("another charset", luna, 415, "unsupported_media_type", with("Content-Type", "application/json; charset=utf-16")),
	)

	It("report everything that is wrong at once", func(ctx context.Context) {
		a := newSite(ctx).do("PUT", "/patient/a", `{"id":"a b","meta":[],"resourceType":"Person"}`, acceptFHIR)
		Expect(a.status).To(Equal(http.StatusBadRequest))
		Expect(a.header.Get("Content-Type")).To(Equal("application/fhir+json; charset=utf-8"))
		var found []any
		for i := range 3 {
			found = append(found, a.json().at("issue", i, "expression", 0))
		}
		Expect(found).To(Equal([]any{"Patient.id", "Patient.meta", "Patient.resourceType"}))
	})

	It("may be gzip, and so may answers", func(ctx context.Context) {
		s := newSite(ctx)
		body := `{"resourceType":"Patient","id":"a","name":[{"text":"` + strings.Repeat("many words ", 500) + `"}]}`
		Expect(s.do("PUT", "/patient/a", zipped(body), with("Content-Encoding", "gzip")).status).To(Equal(http.StatusCreated))
		plain := s.do("GET", "/patient/a", "", with("Accept-Encoding", "identity"))
		Expect(plain.header.Get("Content-Encoding")).To(BeEmpty())
		Expect(plain.body).To(ContainSubstring("many words many words"))
		compressed := s.do("GET", "/patient/a", "", with("Accept-Encoding", "gzip"))
		Expect(compressed.header.Get("Content-Encoding")).To(Equal("gzip"))
		Expect(len(compressed.body)).To(BeNumerically("<", len(plain.body)/4))
		inflated, err := gzip.NewReader(strings.NewReader(compressed.body))
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(inflated)).To(BeEquivalentTo(plain.body))
	})

	It("are pretty on request, with numbers and escapes as they were", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", `{"resourceType":"Patient","id":"a","extension":[{"url":"u","valueDecimal":1.50},{"url":"u","valueDecimal":1e400}],"name":[{"text":"\u00e9\/"}]}`)
		for _, path := range []string{"/patient/a", "/patient", "/patient/a/history", "/patient/none"} {
			Expect(s.do("GET", path+"?_pretty=true", "").body).To(HavePrefix("{\n  \"resourceType\": \""), path)
		}
		pretty := s.do("GET", "/patient/a?_pretty=true", "").body
		Expect(pretty).To(And(ContainSubstring("\"valueDecimal\": 1.50\n"), ContainSubstring("\"valueDecimal\": 1e400\n")))
		Expect(pretty).To(ContainSubstring(`"text": "\u00e9\/"`))
		Expect(s.do("DELETE", "/patient/a?_pretty=true", "").body).To(Equal("{\n  \"status\": 200,\n  \"statusText\": \"OK\"\n}"))
	})

	It("must fit the storage: 413 for a record, 507 for a site", func(ctx context.Context) {
		s := newSite(ctx)
		large := s.do("POST", "/patient", `{"resourceType":"Patient","name":[{"text":"`+strings.Repeat("x", 300<<10)+`"}]}`)
		Expect(large.status).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(large.code()).To(Equal("too_large"))

		limits := cluster.DefaultLimits
		limits.MaxRecords = 1
		full := newSite(ctx, func(s *fhir.Endpoint) { s.Store = gatetest.Everything(engine.Open(s.ID, s.ID, limits)) })
		full.put("/patient/a", luna)
		a := full.do("POST", "/patient", luna)
		Expect(a.status).To(Equal(http.StatusInsufficientStorage))
		Expect(a.code()).To(Equal("storage_full"))
	})
})

// serverMeta matches what the server adds to a resource that has an id: members of meta, or all of
// meta.
var serverMeta = regexp.MustCompile(`,"meta":\{"versionId":"1","lastUpdated":"[^"]+"\}|"versionId":"1","lastUpdated":"[^"]+",?`)

// clientMeta matches the parts of a client's resource that the server replaces.
var clientMeta = regexp.MustCompile(`("versionId": "[^"]+",\s+)?"(versionId|lastUpdated)": "[^"]+",?`)

func withoutLength(r *http.Request) {
	r.ContentLength = -1
	r.Body = io.NopCloser(r.Body)
}

func zipped(text string) string {
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	_, err := io.WriteString(w, text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return buffer.String()
}
