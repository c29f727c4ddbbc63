package ahds_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

func caller(name string) option { return with("X-Caller", name) }

var _ = Describe("A request", func() {
	var s site
	BeforeEach(func(ctx SpecContext) { s = newSite(ctx, "Postgres") })

	refused := func(a answer, status int, code string) answer {
		GinkgoHelper()
		Expect(a.status).To(Equal(status), a.body)
		Expect(a.header.Get("Content-Type")).To(Equal("application/problem+json"))
		problem := a.json()
		Expect(problem).To(And(
			HaveKeyWithValue("code", code), HaveKeyWithValue("status", BeEquivalentTo(status)), HaveKeyWithValue("type", "/errors/"+code),
			HaveKeyWithValue("title", Not(BeEmpty())), HaveKeyWithValue("detail", Not(BeEmpty())),
			HaveKeyWithValue("instance", HaveSuffix("#"+a.header.Get("X-Request-Id"))),
		))
		return a
	}

	It("needs a token, rights and a site", func() {
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		a := refused(s.do("GET", slotPath, "", caller("nobody")), http.StatusUnauthorized, "login_required")
		Expect(a.header.Get("WWW-Authenticate")).To(Equal(`Bearer realm="paddock"`))
		a = refused(s.do("GET", slotPath, "", caller("stranger")), http.StatusForbidden, "permission_denied")
		Expect(a.body).To(ContainSubstring("may not list availabilityslots"))
		refused(s.do("GET", strings.Replace(s.bases[0], s.id, "absent", 1)+slotPath, ""), http.StatusNotFound, "unknown_site")
		for _, segment := range []string{slotPath, groupPath, feedPath} {
			path := segment + "/" + id
			for _, missing := range []struct{ verb, method, path string }{
				{"list", "GET", segment},
				{"create", "POST", segment},
				{"get", "GET", path},
				{"get", "HEAD", path},
				{"update", "PUT", path},
				{"patch", "PATCH", path},
				{"delete", "DELETE", path},
			} {
				a := s.do(missing.method, missing.path, "", caller("no-"+missing.verb))
				Expect(a.status).To(Equal(http.StatusForbidden), missing.method+" "+missing.path)
				if missing.method != "HEAD" {
					Expect(a.body).To(ContainSubstring("may not " + missing.verb + " "))
				}
			}
		}
		for _, verb := range []string{"/hold", "/book", "/release"} {
			refused(s.do("POST", slotPath+"/"+id+verb, "", caller("no-update")), http.StatusForbidden, "permission_denied")
		}
		By("whoever may not is not told what else is wrong")
		refused(s.do("POST", slotPath+"?x=1", "{", caller("no-create")), http.StatusForbidden, "permission_denied")
		refused(s.do("GET", slotPath+"/7", "", caller("no-get")), http.StatusForbidden, "permission_denied")
	})

	It("names a path, a method and formats that are there", func() {
		for _, path := range []string{"", "/", "/appointment", "/availability-slots", slotPath + "/" + uuid.NewString() + "/x", "/Availability-Slot", slotPath + "/", "/availability-slot%2Fchanges"} {
			refused(s.do("GET", path, ""), http.StatusNotFound, "unknown_path")
		}
		for _, path := range []string{"/availability%2Dslot", "/availability-slot/%63hanges"} {
			Expect(s.do("GET", path, "").status).To(Equal(http.StatusOK), path)
		}
		for path, meant := range map[string]string{"/availability-slots": "availability-slot", "/Webhook/x": "webhook", "/site-stats": "site-status", "/event-groups": "eventgroup"} {
			Expect(s.do("GET", path, "").text("detail")).To(HaveSuffix("did you mean /ahds/v1/" + meant + "?"))
		}
		Expect(s.do("GET", "/appointment", "").text("detail")).To(HaveSuffix(
			"/ahds/v1/ and one of availability-slot, availability-slot-feed, availability-slot.ics, delivery, event, event-type, eventgroup, rights, site-status, site-usage, webhook, webhook-event"))
		for path, allowed := range map[string]string{
			slotPath: "GET, HEAD, POST", slotPath + "/" + uuid.NewString(): "DELETE, GET, HEAD, PATCH, PUT", slotPath + "/" + uuid.NewString() + "/book": "POST",
			groupPath: "GET, HEAD, POST", groupPath + "/" + uuid.NewString(): "DELETE, GET, HEAD, PATCH, PUT", slotPath + ".ics": "GET, HEAD",
		} {
			Expect(refused(s.do("OPTIONS", path, ""), http.StatusMethodNotAllowed, "method_not_allowed").header.Get("Allow")).To(Equal(allowed))
		}
		refused(s.do("FROB", slotPath, ""), http.StatusNotImplemented, "unknown_method")
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		for _, accept := range []string{"text/html", "application/xml, text/*", "application/json;q=0", "application/fhir+json", "x"} {
			refused(s.do("GET", slotPath, "", with("Accept", accept)), http.StatusNotAcceptable, "not_acceptable")
		}
		for _, accept := range []string{"*/*", "application/*", "text/html, application/json;q=0.1", "application/json; charset=utf-8", ""} {
			Expect(s.do("GET", slotPath+"/"+id, "", with("Accept", accept)).status).To(Equal(http.StatusOK), accept)
		}
		for _, contentType := range []string{"text/plain", "application/xml", "application/json; charset=latin1", "application/merge-patch+json", "json", "application/x-www-form-urlencoded"} {
			a := refused(s.do("POST", slotPath, slotBody(9), with("Content-Type", contentType)), http.StatusUnsupportedMediaType, "unsupported_media_type")
			Expect(a.header.Get("Accept")).To(Equal("application/json"))
		}
		for _, contentType := range []string{"application/json; charset=UTF-8", "APPLICATION/JSON"} {
			Expect(s.do("POST", slotPath, slotBody(9), with("Content-Type", contentType)).status).To(Equal(http.StatusCreated))
		}
		Expect(s.do("POST", slotPath, slotBody(9), func(r *http.Request) { r.Header.Del("Content-Type") }).status).To(Equal(http.StatusCreated))
		a := refused(s.do("PATCH", slotPath+"/"+id, `[]`, with("Content-Type", "application/json-patch+json")), http.StatusUnsupportedMediaType, "unsupported_media_type")
		Expect(a.header.Get("Accept-Patch")).To(Equal("application/merge-patch+json, application/json"))
	})

	It("has parameters that are known only", func() {
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		for _, a := range []answer{
			s.do("GET", slotPath+"/"+id+"?x=1", ""), s.do("POST", slotPath+"?x=1", slotBody(9)), s.do("PATCH", slotPath+"/"+id+"?x=1", "{}"),
			s.do("DELETE", slotPath+"/"+id+"?x=1", ""), s.do("POST", slotPath+"/"+id+"/book?x=1", ""),
		} {
			Expect(refused(a, http.StatusBadRequest, "invalid_request").errs()).To(Equal([]string{"parameter x unknown_parameter"}))
		}
		Expect(refused(s.do("GET", slotPath+"?a=%zz", ""), http.StatusBadRequest, "invalid_request").errs()).To(Equal([]string{"parameter  invalid_query"}))
		Expect(refused(s.do("GET", slotPath+"?a=%zz", ""), http.StatusBadRequest, "invalid_request").errs()).To(Equal([]string{"parameter  invalid_query"}))
		a := refused(s.do("GET", slotPath+"?isactive=true", ""), http.StatusBadRequest, "invalid_request")
		Expect(a.body).To(ContainSubstring("did you mean isActive?"))
	})

	It("has an id in its path that is a UUID, in any spelling", func() {
		id := s.do("POST", slotPath, slotBody(9)).created(slotID)
		for _, spelled := range []string{id, strings.ToUpper(id), strings.Replace(id, "-", "%2D", 1)} {
			Expect(s.do("GET", slotPath+"/"+spelled, "").ok().text(slotID)).To(Equal(id))
		}
		for _, bad := range []string{"7", "x" + id, strings.ReplaceAll(id, "-", ""), "%00", "..%2f..", id + "%2f", "{" + id + "}"} {
			Expect(refused(s.do("GET", slotPath+"/"+bad, ""), http.StatusBadRequest, "invalid_request").errs()).To(Equal([]string{"parameter id invalid_value"}))
		}
	})

	It("is compressed on either way, and bounded in size", func() {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write([]byte(slotBody(9, fields{"notes": strings.Repeat("x", 5000)})))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Close()).To(Succeed())
		created := s.do("POST", slotPath, packed.String(), with("Content-Encoding", "gzip"))
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		read := s.do("GET", slotPath+"/"+created.text(slotID), "", with("Accept-Encoding", "gzip"))
		Expect(read.header.Get("Content-Encoding")).To(Equal("gzip"))
		Expect(len(read.body)).To(BeNumerically("<", 1000))
		refused(s.do("POST", slotPath, slotBody(9), with("Content-Encoding", "br")), http.StatusUnsupportedMediaType, "unsupported_media_type")
		Expect(s.do("POST", slotPath, slotBody(9), with("Content-Encoding", "gzip")).errs()).To(Equal([]string{"pointer  unparseable_json"}))

		s.setLimits(v1alpha1.Limits{MaxBodySize: resource.NewQuantity(1<<20, resource.BinarySI)})
		big := slotBody(9, fields{"extensions": fields{"a": strings.Repeat("x", 1<<20)}})
		refused(s.do("POST", slotPath, big), http.StatusRequestEntityTooLarge, "too_large")
		packed.Reset()
		w.Reset(&packed)
		_, err = w.Write([]byte(big))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Close()).To(Succeed())
		refused(s.do("POST", slotPath, packed.String(), with("Content-Encoding", "gzip")), http.StatusRequestEntityTooLarge, "too_large")
	})

	It("keeps its id, and is not cached by others", func() {
		a := s.do("GET", slotPath, "", with("X-Request-Id", "mine-1"))
		Expect(a.header.Get("X-Request-Id")).To(Equal("mine-1"))
		Expect(a.header.Get("Cache-Control")).To(Equal("private, no-cache"))
		Expect(a.header.Values("Vary")).To(ContainElements("Accept", "Authorization"))
		Expect(a.header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
	})

	It("is answered 503 while the storage is away", func(ctx SpecContext) {
		away := newSite(ctx, "Postgres", func(_ int, s store.Store) store.Store { return brokenStore{s} })
		for _, a := range []answer{
			away.do("GET", slotPath, ""), away.do("POST", slotPath, slotBody(9)), away.do("GET", slotPath+"/"+uuid.NewString(), ""), away.do("DELETE", slotPath+"/"+uuid.NewString(), ""),
		} {
			Expect(refused(a, http.StatusServiceUnavailable, "unavailable").header.Get("Retry-After")).NotTo(BeEmpty())
		}
		openSites[0].Store(away.id, ahds.DataStore{Settings: settings.Settings{ID: away.id}})
		refused(away.do("GET", slotPath, ""), http.StatusServiceUnavailable, "unavailable")
	})
})

// brokenStore is a store whose backend is away.
type brokenStore struct{ store.Store }

func (brokenStore) Get(context.Context, store.Key) (store.Record, error) {
	return store.Record{}, store.ErrUnavailable
}

func (brokenStore) Search(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, store.ErrUnavailable
}

func (brokenStore) Write(context.Context, []store.Op) ([]store.Result, error) {
	return nil, store.ErrUnavailable
}
