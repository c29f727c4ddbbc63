package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// newPatients makes a site with patients p0, p1, … in this order.
func newPatients(ctx context.Context, n int) (s site, ids []string) {
	GinkgoHelper()
	s = newSite(ctx)
	for i := range n {
		id := fmt.Sprintf("p%d", i)
		s.put("/patient/"+id, luna)
		ids = append(ids, id)
	}
	return s, ids
}

func tokenIn(link string) string {
	GinkgoHelper()
	address, err := url.Parse(link)
	Expect(err).NotTo(HaveOccurred())
	token := address.Query().Get("_page_token")
	Expect(token).NotTo(BeEmpty(), link)
	return token
}

var _ = Describe("Search", func() {
	It("answers with a searchset, the newest first (2.3)", func(ctx context.Context) {
		s, ids := newPatients(ctx, 3)
		slices.Reverse(ids)
		a := s.do("GET", "/patient", "")
		found := a.json()
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(found).To(HaveKeyWithValue("resourceType", "Bundle"))
		Expect(found).To(HaveKeyWithValue("type", "searchset"))
		Expect(found).To(HaveKeyWithValue("total", BeEquivalentTo(3)))
		Expect(found.ids()).To(Equal(ids))
		Expect(found.at("entry", 0, "fullUrl")).To(Equal(s.base + "/patient/p2"))
		Expect(found.at("entry", 0, "search", "mode")).To(Equal("match"))
		Expect(a.body).To(ContainSubstring(`"resource":` + s.do("GET", "/patient/p1", "").body + `,"search"`))
		for _, relation := range []string{"search", "self", "first"} {
			Expect(found.link(relation)).To(Equal(s.base + "/patient"))
		}
		Expect(found.link("next")).To(BeEmpty())
	})

	It("of nothing has no entries", func(ctx context.Context) {
		found := newSite(ctx).do("GET", "/patient", "").json()
		Expect(found).To(HaveKeyWithValue("total", BeEquivalentTo(0)))
		Expect(found).NotTo(HaveKey("entry"))
	})

	It("leaves out what is deleted and other types", func(ctx context.Context) {
		s, _ := newPatients(ctx, 2)
		s.put("/person/p0", `{"resourceType":"Person"}`)
		s.do("DELETE", "/patient/p0", "")
		Expect(s.do("GET", "/patient", "").json().ids()).To(Equal([]string{"p1"}))
	})

	DescribeTable("returns every record once over its pages", func(ctx context.Context, query string, want []string) {
		s, _ := newPatients(ctx, 5)
		s.put("/patient/p1", `{"resourceType":"Patient"}`)
		for _, path := range []string{"/patient", "/Patient"} {
			var found []string
			for next := s.base + path + "?_count=2" + query; next != ""; {
				page := s.do("GET", next, "").json()
				Expect(page.link("self")).To(Equal(next))
				Expect(page.link("first")).To(Equal(s.base + path + "?_count=2" + query))
				Expect(page.link("search")).To(Equal(page.link("first")))
				Expect(len(page.entries())).To(BeNumerically("<=", 2))
				found = append(found, page.ids()...)
				next = page.link("next")
			}
			Expect(found).To(Equal(want))
		}
	},
		Entry("by default the newest first", "", []string{"p4", "p3", "p2", "p1", "p0"}),
		Entry("by id", "&_sort=_id", []string{"p0", "p1", "p2", "p3", "p4"}),
		Entry("by id, descending", "&_sort=-_id", []string{"p4", "p3", "p2", "p1", "p0"}),
		Entry("by lastUpdated", "&_sort=_lastUpdated", []string{"p0", "p2", "p3", "p4", "p1"}),
		Entry("by lastUpdated, descending", "&_sort=-_lastUpdated", []string{"p1", "p4", "p3", "p2", "p0"}),
		Entry("of some ids", "&_id=p0%2Cp2%2CP4", []string{"p4", "p2", "p0"}),
	)

	It("filters by _id and _lastUpdated", func(ctx context.Context) {
		s, _ := newPatients(ctx, 3)
		middle := s.do("GET", "/patient/p1", "").json().at("meta", "lastUpdated").(string)
		search := func(query string) []string {
			GinkgoHelper()
			a := s.do("GET", "/patient?_sort=_id&"+query, "")
			Expect(a.status).To(Equal(http.StatusOK), a.body)
			return a.json().ids()
		}
		Expect(search("_id=p1,none,p0")).To(Equal([]string{"p0", "p1"}))
		Expect(search("_id=p1,p0&_id=p1,p2")).To(Equal([]string{"p1"}))
		Expect(search("_id=none")).To(BeEmpty())
		Expect(search("_lastUpdated=" + middle)).To(ContainElement("p1"))
		Expect(search("_lastUpdated=gt" + middle)).NotTo(ContainElement("p1"))
		Expect(search("_lastUpdated=ge" + middle)).To(ContainElements("p1", "p2"))
		Expect(search("_lastUpdated=lt" + middle)).NotTo(ContainElement("p2"))
		Expect(search("_lastUpdated=ne" + middle)).NotTo(ContainElement("p1"))
		Expect(search("_lastUpdated=ap2000")).To(BeEmpty())
		Expect(search("_lastUpdated=lt2000,ge2000")).To(HaveLen(3))
		zoned := time.Now().Add(-time.Minute).In(time.FixedZone("", 7200)).Format(time.RFC3339)
		Expect(zoned).To(ContainSubstring("+02:00"))
		Expect(search("_lastUpdated=ge"+zoned)).To(HaveLen(3), "a + that arrives as a space")
		Expect(search("_lastUpdated=ge2000&_lastUpdated=lt2000")).To(BeEmpty())
	})

	It("gives the total as asked", func(ctx context.Context) {
		s, _ := newPatients(ctx, 3)
		for query, total := range map[string]any{
			"": 3, "?_count=2": 3, "?_count=2&_total=accurate": 3, "?_total=none": nil, "?_count=0": 3, "?_summary=count": 3, "?_total=estimate": 3,
		} {
			found := s.do("GET", "/patient"+query, "").json()
			if total == nil {
				Expect(found).NotTo(HaveKey("total"), query)
			} else {
				Expect(found).To(HaveKeyWithValue("total", BeEquivalentTo(total)), query)
			}
		}
		for _, query := range []string{"?_count=0", "?_summary=count"} {
			found := s.do("GET", "/patient"+query, "").json()
			Expect(found).NotTo(HaveKey("entry"))
			Expect(found.link("next")).To(BeEmpty())
		}
	})

	It("returns the elements asked for, tagged as a part", func(ctx context.Context) {
		s, _ := newPatients(ctx, 1)
		resource := document(s.do("GET", "/patient?_elements=active", "").json().at("entry", 0, "resource").(map[string]any))
		Expect(resource).To(HaveKeyWithValue("active", true))
		Expect(resource).To(HaveKeyWithValue("id", "p0"))
		Expect(resource).NotTo(HaveKey("birthDate"))
		Expect(resource.at("meta", "tag", 0, "code")).To(Equal("SUBSETTED"))
	})

	It("clamps _count and refuses what it does not know, all at once", func(ctx context.Context) {
		s, _ := newPatients(ctx, 1)
		Expect(s.do("GET", "/patient?_count=5000", "").json().link("self")).To(Equal(s.base + "/patient?_count=1000"))
		a := s.do("GET", "/patient?_count=-1&nme=x&_sort=nme", "")
		Expect(a.status).To(Equal(http.StatusBadRequest))
		Expect(a.json()["issue"]).To(HaveLen(3))
		Expect(a.body).To(ContainSubstring(`\"nme\"`))
		Expect(a.body).To(ContainSubstring("did you mean name?"))
	})

	It("ignores unknown parameters leniently, and says so", func(ctx context.Context) {
		s, _ := newPatients(ctx, 2)
		a := s.do("GET", "/patient?nme=x&_count=1", "", with("Prefer", "handling=lenient"))
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.json().at("entry", 0, "search", "mode")).To(Equal("match"))
		Expect(a.json().at("entry", 1, "search", "mode")).To(Equal("outcome"))
		Expect(a.json().at("entry", 1, "resource", "issue", 0, "diagnostics")).To(ContainSubstring(`"nme"`))
		Expect(a.json().link("self")).To(Equal(s.base + "/patient?_count=1"))
		Expect(s.do("GET", "/patient?_count=x", "", with("Prefer", "handling=lenient")).status).To(Equal(http.StatusBadRequest))
	})

	It("can be posted, with the form and the URL together", func(ctx context.Context) {
		s, _ := newPatients(ctx, 3)
		form := with("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		for _, segment := range segments {
			found := s.do("POST", "/"+segment+"/_search?_count=1", "_id=p0,p2&_sort=_id", form).json()
			Expect(found.ids()).To(Equal([]string{"p0"}))
			Expect(found.link("self")).To(Equal(s.base + "/" + segment + "?_count=1&_id=p0%2Cp2&_sort=_id"))
			Expect(s.do("GET", found.link("next"), "").json().ids()).To(Equal([]string{"p2"}))
		}
		Expect(s.do("POST", "/patient/_search", "").json().ids()).To(HaveLen(3))
		Expect(s.do("POST", "/patient/_search", "_format=application/fhir%2Bjson&_pretty=true", form).header.Get("Content-Type")).
			To(Equal("application/fhir+json; charset=utf-8"))
		Expect(s.do("POST", "/patient/_search", "_format=xml", form).status).To(Equal(http.StatusNotAcceptable))
		Expect(s.do("POST", "/patient/_search", "a=%zz", form).status).To(Equal(http.StatusBadRequest))
		Expect(s.do("POST", "/patient/_search", `{"_id":"p0"}`).status).To(Equal(http.StatusUnsupportedMediaType))
		for _, accepted := range []string{"Application/X-WWW-Form-Urlencoded", "application/x-www-form-urlencoded;charset=UTF-8", "application/x-www-form-urlencoded; charset=\"utf-8\""} {
			Expect(s.do("POST", "/patient/_search", "_id=p0", with("Content-Type", accepted)).json().ids()).To(HaveLen(1), accepted)
		}
		for _, charset := range []string{"latin1", "ISO-8859-1", "utf-16", ""} {
			refused := s.do("POST", "/patient/_search", "_id=p0", with("Content-Type", "application/x-www-form-urlencoded; charset=\""+charset+"\""))
			Expect(refused.status).To(Equal(http.StatusUnsupportedMediaType), charset)
			Expect(refused.body).To(ContainSubstring("the charset"), charset)
		}
	})

	It("takes page tokens only where they are from", func(ctx context.Context) {
		s, _ := newPatients(ctx, 3)
		other, _ := newPatients(ctx, 3)
		asAnn := with("X-Caller", "ann")
		token := tokenIn(s.do("GET", "/patient?_count=1", "", asAnn).json().link("next"))
		query := "?_count=1&_page_token=" + token
		Expect(s.do("GET", "/patient"+query, "", asAnn).json().ids()).To(Equal([]string{"p1"}))
		Expect(s.do("GET", "/Patient"+query+"&_pretty=true", "", asAnn, acceptFHIR).json().ids()).To(Equal([]string{"p1"}))

		refused := map[string]answer{
			"another caller":    s.do("GET", "/patient"+query, "", with("X-Caller", "bob")),
			"another query":     s.do("GET", "/patient"+query+"&_sort=_id", "", asAnn),
			"another type":      s.do("GET", "/person"+query, "", asAnn),
			"another site":      other.do("GET", "/patient"+query, "", asAnn),
			"a changed token":   s.do("GET", "/patient"+strings.Replace(query, token, token[:10]+"A"+token[11:], 1)+"B", "", asAnn),
			"a token of nobody": s.do("GET", "/patient?_count=1&_page_token=next", "", asAnn),
		}
		clockOffset.Store(int64(25 * time.Hour))
		DeferCleanup(func() { clockOffset.Store(0) })
		refused["an old token"] = s.do("GET", "/patient"+query, "", asAnn)
		for what, a := range refused {
			Expect(a.status).To(Equal(http.StatusBadRequest), what)
			Expect(a.code()).To(Equal("invalid_query"), what)
		}
	})

	It("returns what lives throughout exactly once while others write", func(ctx context.Context) {
		s, ids := newPatients(ctx, 30)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					s.put(fmt.Sprintf("/patient/x%d", i), luna)
					s.put(fmt.Sprintf("/patient/p%d", i%30), fmt.Sprintf(`{"resourceType":"Patient","multipleBirthInteger":%d}`, i))
					s.do("DELETE", fmt.Sprintf("/patient/x%d", i/2), "")
				}
			}
		}()
		for range 5 {
			seen := map[string]int{}
			for next := s.base + "/patient?_count=7"; next != ""; {
				page := s.do("GET", next, "").json()
				for _, id := range page.ids() {
					seen[id]++
				}
				next = page.link("next")
			}
			for _, id := range ids {
				Expect(seen).To(HaveKeyWithValue(id, 1))
			}
		}
		close(stop)
		<-stopped
	})
})
