package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var sendPatch = with("Content-Type", "application/json-patch+json")

var _ = Describe("Patch", func() {
	const rex = `{"resourceType":"Patient", "id":"rex","active" : true,"extension":[{"url":"urn:weight","valueDecimal":12.50}],"name":[{"text":"R\u00e9x"}]}`

	It("changes what it says and keeps every other byte", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		patched := s.do("PATCH", "/patient/REX", `[
			{"op":"test","path":"/active","value":true},
			{"op":"replace","path":"/active","value":false},
			{"op":"add","path":"/name/-","value":{"text":"Rexi"}}
		]`, sendPatch)
		Expect(patched.status).To(Equal(http.StatusOK), patched.body)
		Expect(patched.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(patched.json().at("meta", "versionId")).To(Equal("2"))
		stored := `"active" : false,"extension":[{"url":"urn:weight","valueDecimal":12.50}],"name":[{"text":"R\u00e9x"},{"text":"Rexi"}]}`
		Expect(patched.body).To(HaveSuffix(stored))
		Expect(s.do("GET", "/patient/rex", "").body).To(Equal(patched.body))
		Expect(methods(s.do("GET", "/patient/rex/_history", "", acceptFHIR).json())).To(Equal([]string{"PATCH", "PUT"}))
		Expect(methods(s.do("GET", "/patient/rex/_history", "").json())).To(Equal([]string{"PUT", "PUT"}))
	})

	It("may test and copy what the server gives, and cannot set it", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		patched := s.do("PATCH", "/patient/rex", `[
			{"op":"test","path":"/meta/versionId","value":"1"},
			{"op":"replace","path":"/meta/versionId","value":"7"},
			{"op":"add","path":"/meta/tag","value":[{"system":"urn:t","code":"seen"}]}
		]`, sendPatch)
		Expect(patched.json().at("meta", "versionId")).To(Equal("2"))
		Expect(patched.json().at("meta", "tag", 0, "code")).To(Equal("seen"))
	})

	It("that changes nothing keeps the version", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		for _, patch := range []string{`[]`, `[{"op":"replace","path":"/active","value":true}]`, `[{"op":"test","path":"/name/0/text","value":"Réx"}]`} {
			Expect(s.do("PATCH", "/patient/rex", patch, sendPatch).header.Get("ETag")).To(Equal(`W/"1"`), patch)
		}
	})

	It("is refused as a whole, and says why", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		for patch, want := range map[string]struct {
			status int
			code   string
		}{
			`{"active":false}`:           {400, "invalid_patch"},
			`[`:                          {400, "invalid_patch"},
			`[{"op":"merge","path":""}]`: {400, "invalid_patch"},
			`[{"op":"replace","path":"/active","value":false},{"op":"remove","path":"/birthDate"}]`:             {409, "patch_conflict"},
			`[{"op":"replace","path":"/active","value":false},{"op":"test","path":"/name/0/text","value":"x"}]`: {409, "patch_test_failed"},
			`[{"op":"replace","path":"/id","value":"max"}]`:                                                     {400, "invalid_id"},
			`[{"op":"replace","path":"/id","value":"REX"}]`:                                                     {400, "invalid_id"},
			`[{"op":"remove","path":"/id"}]`:                                                                    {400, "invalid_id"},
			`[{"op":"replace","path":"/resourceType","value":"Person"}]`:                                        {400, "resource_mismatch"},
			`[{"op":"remove","path":"/resourceType"}]`:                                                          {400, "missing_element"},
			`[{"op":"add","path":"/active","value":"yes"}]`:                                                     {400, ""},
			`[{"op":"replace","path":"","value":5}]`:                                                            {400, "not_an_object"},
			`[{"op":"add","path":"/name/-","value":{"text":"` + strings.Repeat("x", 300<<10) + `"}}]`:           {413, "too_large"},
		} {
			refused := s.do("PATCH", "/patient/rex", patch, sendPatch)
			Expect(refused.status).To(Equal(want.status), patch[:min(len(patch), 200)])
			if want.code != "" {
				Expect(refused.code()).To(Equal(want.code), refused.body)
			}
		}
		Expect(s.do("GET", "/patient/rex", "").header.Get("ETag")).To(Equal(`W/"1"`))
		for _, kind := range []string{"application/json", "application/fhir+json", "application/merge-patch+json", "application/xml-patch+xml"} {
			refused := s.do("PATCH", "/patient/rex", `[]`, with("Content-Type", kind))
			Expect(refused.status).To(Equal(http.StatusUnsupportedMediaType), kind)
			Expect(refused.header.Get("Accept-Patch")).To(Equal("application/json-patch+json"))
		}
		Expect(s.do("PATCH", "/patient/rex", `[]`, with("Content-Type", "application/json-patch+json; charset=utf-8")).status).To(Equal(http.StatusOK))
	})

	It("honours If-Match and Prefer", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		const off = `[{"op":"replace","path":"/active","value":false}]`
		stale := s.do("PATCH", "/patient/rex", off, sendPatch, with("If-Match", `W/"2"`))
		Expect(stale.status).To(Equal(http.StatusPreconditionFailed))
		Expect(stale.header.Get("ETag")).To(Equal(`W/"1"`))
		Expect(s.do("PATCH", "/patient/rex", off, sendPatch, with("If-None-Match", "*")).status).To(Equal(http.StatusBadRequest))
		minimal := s.do("PATCH", "/patient/rex", off, sendPatch, with("If-Match", `W/"7", W/"1"`), with("Prefer", "return=minimal"))
		Expect(minimal.status).To(Equal(http.StatusOK))
		Expect(minimal.body).To(BeEmpty())
		Expect(minimal.header.Get("ETag")).To(Equal(`W/"2"`))
		Expect(s.do("PATCH", "/patient/never", off, sendPatch, with("If-Match", "*")).status).To(Equal(http.StatusPreconditionFailed))
	})

	It("needs a record and the right to patch, and shows nothing without the right to get it", func(ctx context.Context) {
		s := newSite(ctx)
		Expect(s.do("PATCH", "/patient/never", `[]`, sendPatch).status).To(Equal(http.StatusNotFound))
		s.put("/patient/rex", rex)
		Expect(s.do("PATCH", "/patient/rex", `[]`, sendPatch, with("X-Caller", "no-patch")).status).To(Equal(http.StatusForbidden))
		noGet := with("X-Caller", "no-get")
		for _, patch := range []string{
			`[{"op":"copy","from":"/name/0/text","path":"/id"}]`, `[{"op":"move","from":"/name/0/text","path":"/gender"}]`,
			`[{"op":"test","path":"/name/0/text","value":"Rex"}]`, `[{"op":"test","path":"/name/0/text","value":"Max"}]`,
			`[{"op":"replace","path":"/gender","value":"none"}]`, `[{"op":"remove","path":"/photo"}]`,
		} {
			for _, path := range []string{"/patient/rex", "/patient?_id=rex"} {
				refused := s.do("PATCH", path, patch, sendPatch, noGet)
				Expect(refused.status).To(Equal(http.StatusForbidden), patch)
				Expect(refused.body).NotTo(ContainSubstring("Rex"))
			}
		}
		written := s.do("PATCH", "/patient/rex", `[{"op":"add","path":"/gender","value":"male"}]`, sendPatch, noGet)
		Expect(written.status).To(Equal(http.StatusOK))
		Expect(written.body).To(BeEmpty())
		Expect(written.header.Get("ETag")).To(Equal(`W/"2"`))
		s.do("DELETE", "/patient/rex", "")
		Expect(s.do("PATCH", "/patient/rex", `[]`, sendPatch).status).To(Equal(http.StatusGone))
	})

	It("loses none of many at once", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/rex", rex)
		const writers = 12
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() {
				defer GinkgoRecover()
				add := fmt.Sprintf(`[{"op":"add","path":"/name/-","value":{"text":"n%d"}}]`, i)
				Expect(s.do("PATCH", "/patient/rex", add, sendPatch).status).To(Equal(http.StatusOK))
			})
		}
		group.Wait()
		stored := s.do("GET", "/patient/rex", "").json()
		Expect(stored.at("meta", "versionId")).To(Equal(fmt.Sprint(writers + 1)))
		Expect(stored["name"]).To(HaveLen(writers + 1))
	}, SpecTimeout(time.Minute))

	It("keeps what the contract alone lets be missing", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/endpoint/e", `{"resourceType":"Endpoint","connectionType":{"code":"x"},"payloadType":[{"text":"any"}]}`)
		Expect(s.do("PATCH", "/Endpoint/e", `[{"op":"add","path":"/name","value":"n"}]`, sendPatch, acceptFHIR).status).To(Equal(http.StatusOK))
	})
})
