package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
)

// spokenDialect is a dialect as a request asks for it, with the Content-Type of its responses.
type spokenDialect struct {
	name, contentType string
	options           []option
}

var spokenDialects = []spokenDialect{
	{"contract", "application/json", nil},
	{"FHIR", "application/fhir+json; charset=utf-8", []option{acceptFHIR, sendFHIR}},
}

// onEverything describes a spec for each engine and each dialect.
func onEverything(text string, spec func(ctx context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect)) {
	for engine, open := range newSites {
		for _, spoken := range spokenDialects {
			It(fmt.Sprintf("%s (%s, %s dialect)", text, engine, spoken.name), func(ctx context.Context) {
				spec(ctx, func(changes ...func(*fhir.Endpoint)) site { return open(ctx, changes...) }, spoken)
			})
		}
	}
}

// speak sends a request in a dialect. Bodies that are no resources keep their own Content-Type.
func (s site) speak(spoken spokenDialect, method, path, body string, options ...option) answer {
	GinkgoHelper()
	return s.do(method, path, body, append(append([]option{}, spoken.options...), options...)...)
}

var choosesIDs = func(s *fhir.Endpoint) { s.UpdateCreate = false }

var _ = Describe("FHIR to the letter:", func() {
	onEverything("every answer with a body has its Content-Type, with a charset in FHIR's", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		s.put("/Patient/gone", luna)
		for _, a := range []answer{
			s.speak(spoken, "GET", "/Patient/a", ""),
			s.speak(spoken, "GET", "/Patient", ""),
			s.speak(spoken, "GET", "/Patient/a/_history", ""),
			s.speak(spoken, "GET", "/metadata", ""),
			s.speak(spoken, "GET", "/Patient/none", ""),
			s.speak(spoken, "GET", "/nothing", ""),
			s.speak(spoken, "PROPFIND", "/Patient", ""),
			s.speak(spoken, "POST", "/Patient", `{`),
			s.speak(spoken, "POST", "/Patient", `{"resourceType":"Patient"}`),
			s.speak(spoken, "DELETE", "/Patient/gone", ""),
			s.speak(spoken, "GET", "/Patient/gone", ""),
			s.speak(spoken, "POST", "", `{"resourceType":"Bundle","type":"batch"}`),
		} {
			Expect(a.header.Get("Content-Type")).To(Equal(spoken.contentType), a.body)
		}
	})

	It("takes a charset in Accept and _format for the same media type", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/Patient/a", luna)
		for _, kind := range []string{"application/fhir+json;charset=utf-8", "application/fhir+json; charset=UTF-8", "Application/FHIR+JSON;charset=utf-8;fhirVersion=4.0"} {
			Expect(s.do("GET", "/Patient/a", "", with("Accept", kind)).header.Get("Content-Type")).To(Equal("application/fhir+json; charset=utf-8"), kind)
			format := strings.NewReplacer("+", "%2B", " ", "%20").Replace(kind)
			Expect(s.do("GET", "/Patient/a?_format="+format, "").header.Get("Content-Type")).To(Equal("application/fhir+json; charset=utf-8"), kind)
		}
		Expect(s.do("GET", "/Patient/a?_format=application/json;charset=utf-8", "", acceptFHIR).header.Get("Content-Type")).To(Equal("application/json"))
		for _, refused := range []string{"application/fhir%2Bxml;charset=utf-8", "application/fhir%2Bjson;fhirVersion=5.0", "application/fhir%2Bjson;charset"} {
			Expect(s.do("GET", "/Patient/a?_format="+refused, "").status).To(Equal(http.StatusNotAcceptable), refused)
		}
	})

	onEverything("id on create, versionId and lastUpdated always, are not read", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		const meta = `"meta":{"versionId":{"a":1},"lastUpdated":"2017-09-05T23:30:05.5","tag":[{"code":"x"}]}`
		created := s.speak(spoken, "POST", "/Patient", `{"resourceType":"Patient","id":"not an id!",`+meta+`}`)
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		Expect(created.json()["id"]).To(MatchRegexp(`^[0-9a-f-]{36}$`))
		Expect(created.json()["meta"]).To(HaveKeyWithValue("versionId", "1"))
		Expect(created.json().at("meta", "lastUpdated")).To(MatchRegexp(`^20[2-9]\d-.*Z$`))
		Expect(created.json().at("meta", "tag", 0, "code")).To(Equal("x"))
		updated := s.speak(spoken, "PUT", "/Patient/a", `{"resourceType":"Patient","id":"a",`+meta+`,"active":true}`)
		Expect(updated.status).To(Equal(http.StatusCreated), updated.body)
		Expect(updated.json()["meta"]).To(HaveKeyWithValue("versionId", "1"))
		Expect(s.speak(spoken, "PUT", "/Patient/a", `{"resourceType":"Patient","id":"not an id!"}`).code()).To(Equal("invalid_id"))
		batch := s.speak(spoken, "POST", "", `{"resourceType":"Bundle","type":"batch","entry":[{"request":{"method":"POST","url":"Patient"},"resource":{"resourceType":"Patient","id":17,`+meta+`}}]}`)
		Expect(batch.json().at("entry", 0, "response", "status")).To(Equal("201 Created"), batch.body)
		judged := s.speak(spoken, "POST", "/Patient/$validate?mode=create", `{"resourceType":"Patient","id":"not an id!",`+meta+`}`)
		Expect(judged.body).NotTo(ContainSubstring(`"error"`))
	})

	onEverything("a write of the same value makes no version", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		const stored = `{"resourceType":"Patient","id":"zoe","meta":{"tag":[{"code":"x"}]},"name":[{"text":"Zoë"}],"extension":[{"url":"urn:weight","valueDecimal":1.50}]}`
		first := s.put("/Patient/zoe", stored)
		// What a client makes of what it read: other order, other escapes, the server's meta.
		again := fmt.Sprintf(`{ "extension": [ {"valueDecimal": 1.50, "url": "urn:weight"} ], "name": [ {"text": "Zo\u00eb"} ],
			"meta": {"versionId": "1", "lastUpdated": %q, "tag": [ {"code": "\u0078"} ]}, "id": "zoe", "resourceType": "Patient" }`,
			first.json().at("meta", "lastUpdated"))
		unchanged := func(a answer) {
			GinkgoHelper()
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			Expect(a.header.Get("ETag")).To(Equal(`W/"1"`))
			Expect(s.do("GET", "/Patient/zoe", "").body).To(Equal(first.body), "what is stored stays byte for byte")
		}
		unchanged(s.speak(spoken, "PUT", "/Patient/zoe", again))
		unchanged(s.speak(spoken, "PUT", "/Patient/zoe", again, with("If-Match", `W/"1"`)))
		unchanged(s.speak(spoken, "PUT", "/Patient?_tag=x", again))
		unchanged(s.speak(spoken, "PATCH", "/Patient/zoe", `[{"op":"replace","path":"/name","value":[{"text":"Zo\u00eb"}]}]`, with("Content-Type", "application/json-patch+json")))
		for _, kind := range []string{"batch", "transaction"} {
			bundle := s.speak(spoken, "POST", "", `{"resourceType":"Bundle","type":"`+kind+`","entry":[{"request":{"method":"PUT","url":"Patient/zoe"},"resource":`+again+`}]}`)
			Expect(bundle.json().at("entry", 0, "response", "etag")).To(Equal(`W/"1"`), bundle.body)
		}
		said := s.speak(spoken, "PUT", "/Patient/zoe", again, with("Prefer", "return=OperationOutcome"))
		Expect(said.code()).To(Equal("unchanged"))
		Expect(said.json().at("issue", 0, "diagnostics")).To(ContainSubstring("versionId stays 1"))
		Expect(s.do("GET", "/Patient/zoe/_history", "").json()["total"]).To(BeEquivalentTo(1))
		for version, changed := range []string{
			strings.Replace(again, "1.50", "1.5", 1),
			strings.Replace(again, `[ {"text": "Zo\u00eb"} ]`, `[ {"text": "Zo\u00eb"}, {"text": "Z"} ]`, 1),
			strings.Replace(again, `[ {"text": "Zo\u00eb"} ]`, `[ {"text": "Z"}, {"text": "Zo\u00eb"} ]`, 1),
		} {
			Expect(s.speak(spoken, "PUT", "/Patient/zoe", changed).header.Get("ETag")).To(Equal(fmt.Sprintf(`W/"%d"`, version+2)))
		}
	})

	onEverything("a PUT of a new id where the site makes ids is 405, and 404 by the contract", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open(choosesIDs)
		status, code := http.StatusNotFound, "resource_not_found"
		if spoken.name == "FHIR" {
			status, code = http.StatusMethodNotAllowed, "update_create_disabled"
		}
		const body = `{"resourceType":"Patient","id":"new"}`
		for _, a := range []answer{
			s.speak(spoken, "PUT", "/Patient/new", body),
			s.speak(spoken, "PUT", "/Patient/new", body, with("If-None-Match", "*")),
		} {
			Expect(a.status).To(Equal(status))
			Expect(a.code()).To(Equal(code))
			if status == http.StatusMethodNotAllowed {
				Expect(a.header.Get("Allow")).To(Equal("DELETE, GET, HEAD, PATCH"))
			}
		}
		batch := s.speak(spoken, "POST", "", `{"resourceType":"Bundle","type":"batch","entry":[{"request":{"method":"PUT","url":"Patient/new"},"resource":`+body+`}]}`)
		Expect(batch.json().at("entry", 0, "response", "status")).To(HavePrefix(fmt.Sprint(status)))
		Expect(s.speak(spoken, "PUT", "/Patient/new", body, with("If-Match", `W/"1"`)).status).To(Equal(http.StatusPreconditionFailed))
		id := s.speak(spoken, "POST", "/Patient", `{"resourceType":"Patient"}`).json()["id"].(string)
		Expect(s.speak(spoken, "PUT", "/Patient/"+id, `{"resourceType":"Patient","id":"`+id+`","active":true}`).status).To(Equal(http.StatusOK))
		s.speak(spoken, "DELETE", "/Patient/"+id, "")
		Expect(s.speak(spoken, "PUT", "/Patient/"+id, `{"resourceType":"Patient","id":"`+id+`"}`).status).To(Equal(http.StatusGone))
	})

	onEverything("an operation that does not exist is 404 and named", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, path := range []string{
				"/ValueSet/$lookup", "/Patient/$lookup", "/patient/%24lookup", "/$lookup", "/Patient/a/$lookup", "/Patient/a/$lookup/",
				"/CodeSystem/x/$lookup?code=a", "/Patient/a/_history/$lookup", "/Patient/a/b/c/$lookup",
			} {
				a := s.speak(spoken, method, path, "")
				Expect(a.status).To(Equal(http.StatusNotFound), method+" "+path)
				Expect(a.code()).To(Equal("unknown_operation"), method+" "+path)
				Expect(a.json().at("issue", 0, "diagnostics")).To(ContainSubstring("$lookup"))
			}
		}
		Expect(s.speak(spoken, "GET", "/Patient/$validate", "").status).To(Equal(http.StatusMethodNotAllowed))
		Expect(s.speak(spoken, "GET", "/$validate", "").code()).To(Equal("unknown_operation"))
		batch := s.speak(spoken, "POST", "", `{"resourceType":"Bundle","type":"batch","entry":[
			{"request":{"method":"GET","url":"ValueSet/$lookup?code=a"}},
			{"request":{"method":"POST","url":"Practitioner/a/$everything"},"resource":{"resourceType":"Parameters"}}]}`)
		for i := range 2 {
			Expect(batch.json().at("entry", i, "response", "status")).To(Equal("404 Not Found"), batch.body)
			Expect(batch.json().at("entry", i, "response", "outcome", "issue", 0, "details", "coding", 0, "code")).To(Equal("unknown_operation"))
		}
	})

	onEverything("a slash at the end of a path changes nothing", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		form := with("Content-Type", "application/x-www-form-urlencoded")
		for _, request := range []struct {
			method, path, body string
			options            []option
		}{
			{"GET", "/metadata", "", nil},
			{"GET", "", "", nil},
			{"GET", "/_history", "", nil},
			{"POST", "/_search", "_type=Patient", []option{form}},
			{"GET", "/Patient", "", nil},
			{"POST", "/Patient/_search", "_id=a", []option{form}},
			{"GET", "/Patient/_history", "", nil},
			{"GET", "/Patient/a", "", nil},
			{"GET", "/patient/a/history", "", nil},
			{"GET", "/Patient/a/_history", "", nil},
			{"GET", "/Patient/a/_history/1", "", nil},
			{"GET", "/Patient/a/$everything", "", nil},
			{"POST", "/Patient/$validate", luna, nil},
			{"POST", "/Patient/a/$validate", luna, nil},
			{"POST", "", `{"resourceType":"Bundle","type":"batch"}`, nil},
		} {
			without := s.speak(spoken, request.method, request.path, request.body, request.options...)
			slashed := s.speak(spoken, request.method, request.path+"/", request.body, request.options...)
			Expect(without.status).To(Equal(http.StatusOK), request.path+without.body)
			Expect(slashed.status).To(Equal(http.StatusOK), request.path)
			Expect(slashed.body).To(Equal(without.body), request.path)
		}
		Expect(s.speak(spoken, "GET", "/Patient/a%2F", "").status).To(Equal(http.StatusNotFound), "an escaped slash is part of an id, which has none")
	})

	onEverything("a conditional delete without a match says so", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		a := s.speak(spoken, "DELETE", "/Patient?identifier=urn:chip|none", "")
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.body).To(ContainSubstring("no record matches the criteria"))
		s.put("/Patient/a", luna)
		Expect(s.speak(spoken, "DELETE", "/Patient?birthdate=2019-06-14", "").body).NotTo(ContainSubstring("no record matches"))
		Expect(s.do("GET", "/Patient/a", "").status).To(Equal(http.StatusGone))
	})

	onEverything("a history takes _summary, _elements and _count=0, and its entries have ETags", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", `{"resourceType":"Patient","active":true,"name":[{"text":"A"}],"photo":[{"title":"p"}]}`)
		s.put("/Patient/a", `{"resourceType":"Patient","active":false,"name":[{"text":"A"}],"photo":[{"title":"p"}]}`)
		for _, path := range []string{"/Patient/a/_history", "/Patient/_history", "/_history"} {
			all := s.speak(spoken, "GET", path, "").json()
			for i, version := range []string{"2", "1"} {
				Expect(all.entries()[i].at("response", "etag")).To(Equal(`W/"` + version + `"`))
			}
			some := s.speak(spoken, "GET", path+"?_elements=active", "").json()
			for i := range 2 {
				Expect(some.entries()[i]["resource"]).To(HaveKey("active"))
				Expect(some.entries()[i]["resource"]).NotTo(HaveKey("name"))
				Expect(some.entries()[i].at("resource", "meta", "tag", 0, "code")).To(Equal("SUBSETTED"))
			}
			summary := s.speak(spoken, "GET", path+"?_summary=true", "").json()
			Expect(summary.entries()[0]["resource"]).To(HaveKey("name"))
			Expect(summary.entries()[0]["resource"]).NotTo(HaveKey("photo"))
			for _, query := range []string{"?_count=0", "?_summary=count"} {
				total := s.speak(spoken, "GET", path+query, "")
				Expect(total.json()["total"]).To(BeEquivalentTo(2), total.body)
				Expect(total.json().entries()).To(BeEmpty())
				Expect(total.json().link("next")).To(BeEmpty())
				Expect(total.json().link("self")).To(HaveSuffix(query))
			}
			Expect(s.speak(spoken, "GET", path+"?_elements=active&_summary=true", "").status).To(Equal(http.StatusBadRequest))
		}
	})

	onEverything("pages of searches and histories are linked both ways, in Link headers too", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		for i := range 5 {
			s.put(fmt.Sprintf("/Patient/p%d", i), fmt.Sprintf(`{"resourceType":"Patient","name":[{"family":"F%d"}]}`, i))
		}
		for _, path := range []string{"/Patient?_count=2", "/Patient?_count=2&_sort=family", "/Patient/_history?_count=2", "/_history?_count=2"} {
			get := func(address string) answer {
				GinkgoHelper()
				a := s.speak(spoken, "GET", address, "")
				Expect(a.status).To(Equal(http.StatusOK), a.body)
				for _, relation := range []string{"self", "first", "previous", "next"} {
					if address := a.json().link(relation); address != "" {
						Expect(a.header.Get("Link")).To(ContainSubstring("<" + address + `>; rel="` + relation + `"`))
					} else {
						Expect(a.header.Get("Link")).NotTo(ContainSubstring(`"` + relation + `"`))
					}
				}
				return a
			}
			first := get(path)
			Expect(first.json().link("previous")).To(BeEmpty())
			Expect(first.json().link("self")).To(Equal(first.json().link("first")))
			second := get(first.json().link("next"))
			Expect(get(second.json().link("previous")).json().ids()).To(Equal(first.json().ids()))
			third := get(second.json().link("next"))
			Expect(third.json().link("next")).To(BeEmpty())
			back := get(third.json().link("previous"))
			Expect(back.json().ids()).To(Equal(second.json().ids()))
			Expect(get(back.json().link("next")).json().ids()).To(Equal(third.json().ids()))
			Expect(back.json().link("previous")).To(BeEmpty(), "a page reached by previous does not know the one before")
		}
		long := get200(s, "/Patient?_count=2&name="+strings.Repeat("a", 2000)+","+strings.Repeat("b", 2000))
		Expect(long.header).NotTo(HaveKey("Link"), "links that are too long for a header are in the Bundle only")
		Expect(long.json().link("self")).NotTo(BeEmpty())
	})

	onEverything("_count above the maximum is reduced, and the answer says so", func(_ context.Context, open func(...func(*fhir.Endpoint)) site, spoken spokenDialect) {
		s := open()
		s.put("/Patient/a", luna)
		reduced := s.speak(spoken, "GET", "/Patient?_count=1001", "").json()
		Expect(reduced.ids()).To(HaveLen(2))
		Expect(reduced.entries()[1].at("search", "mode")).To(Equal("outcome"))
		Expect(reduced.entries()[1].at("resource", "issue", 0, "details", "coding", 0, "code")).To(Equal("count_reduced"))
		Expect(reduced["total"]).To(BeEquivalentTo(1))
		Expect(reduced.link("self")).To(HaveSuffix("_count=1000"))
		Expect(s.speak(spoken, "GET", "/Patient?_count=1000", "").json().entries()).To(HaveLen(1))
	})

	It("_count above the maximum of the site is reduced, and the answer says so", func(ctx context.Context) {
		s := newSite(ctx, func(s *fhir.Endpoint) { s.Limits.MaxPageSize = new(int32(100)) })
		reduced := get200(s, "/Patient?_count=101").json()
		Expect(reduced.entries()).To(HaveLen(1))
		Expect(reduced.entries()[0].at("resource", "issue", 0, "diagnostics")).To(ContainSubstring("at most 100 matches"))
		Expect(reduced.link("self")).To(HaveSuffix("_count=100"))
		Expect(get200(s, "/Patient/_history?_count=101").json().link("self")).To(HaveSuffix("_count=100"))
	})

	It("repeats the client's X-Request-Id as X-Correlation-Id", func(ctx context.Context) {
		s := newSite(ctx)
		sane := s.do("GET", "/Patient", "", with("X-Request-Id", "abc-1"))
		Expect(sane.header.Get("X-Request-Id")).To(Equal("abc-1"))
		Expect(sane.header.Get("X-Correlation-Id")).To(Equal("abc-1"))
		strange := s.do("GET", "/Patient/none", "", with("X-Request-Id", "urn:uuid 7"))
		Expect(strange.header.Get("X-Request-Id")).NotTo(Equal("urn:uuid 7"))
		Expect(strange.header.Get("X-Correlation-Id")).To(Equal("urn:uuid 7"))
		Expect(s.do("GET", "/Patient", "").header).NotTo(HaveKey("X-Correlation-Id"))
		Expect(s.do("GET", "/Patient", "", with("X-Request-Id", strings.Repeat("a", 257))).header).NotTo(HaveKey("X-Correlation-Id"))
	})

	It("keeps the version where the same value is written by the aggregated API's way", func(ctx context.Context) {
		for _, open := range newSites {
			s := open(ctx)
			s.put("/Patient/a", luna)
			before, err := s.store.Get(ctx, store.Key{Type: "Patient", ID: "a"})
			Expect(err).NotTo(HaveOccurred())
			body := before.Body
			body.JSON = append([]byte(" "), body.JSON...)
			body.IDOffset, body.MetaOffset = body.IDOffset+1, body.MetaOffset+1
			results, err := s.store.Write(ctx, []store.Op{{Kind: store.Put, Key: before.Key, Method: store.MethodPatch, Body: body, Metadata: []byte(`{"labels":{"a":"b"}}`)}})
			Expect(err).NotTo(HaveOccurred())
			Expect(results[0].Record.Version).To(Equal(before.Version))
			Expect(results[0].Record.Body).To(Equal(before.Body))
		}
	})
})

func get200(s site, path string) answer {
	GinkgoHelper()
	a := s.do("GET", path, "")
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	return a
}
