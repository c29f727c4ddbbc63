package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Two API servers behind one address", func() {
	for _, site := range demos {
		Context("with the site "+site, func() { describeReplicas(site) })
	}
})

func describeReplicas(site string) {
	fhir := "/site/" + site + "/fhir"
	var patients string
	BeforeEach(func() { patients = balanced + fhir + "/patient" })

	It("read at once what either of them wrote", func() {
		for i := range 25 {
			created := send(request{method: "POST", url: patients, body: patient(i)})
			Expect(created.status).To(Equal(http.StatusCreated), string(created.body))
			address := patients + "/" + created.field("id").(string)
			for range 2 {
				Expect(send(request{method: "GET", url: address}).field("multipleBirthInteger")).To(BeEquivalentTo(i))
			}
			updated := strings.Replace(string(created.body), fmt.Sprintf(`"multipleBirthInteger":%d`, i), `"multipleBirthInteger":1000`, 1)
			Expect(send(request{method: "PUT", url: address, body: updated}).status).To(Equal(http.StatusOK))
			for range 2 {
				answer := send(request{method: "GET", url: address})
				Expect(answer.field("multipleBirthInteger")).To(BeEquivalentTo(1000))
				Expect(answer.header.Get("ETag")).To(Equal(`W/"2"`))
			}
			Expect(send(request{method: "DELETE", url: address}).status).To(Equal(http.StatusOK))
			for range 2 {
				Expect(send(request{method: "GET", url: address}).status).To(Equal(http.StatusGone))
			}
		}
	})

	It("find within a second what either of them wrote", func() {
		for i, base := range paddock.URLs {
			id := fmt.Sprintf("found-%d", i)
			Expect(send(request{method: "PUT", url: base + fhir + "/patient/" + id, body: patient(i)}).status).To(Equal(http.StatusCreated))
			for _, other := range paddock.URLs {
				search := request{method: "GET", url: other + fhir + "/patient?_id=" + id}
				if other == base {
					Expect(send(search).field("total")).To(BeEquivalentTo(1))
				}
				Eventually(func() any { return send(search).field("total") }).Within(time.Second).ProbeEvery(5 * time.Millisecond).Should(BeEquivalentTo(1))
			}
		}
	})

	It("let one of 64 writers under the same If-Match win", func() {
		address := patients + "/raced-update"
		Expect(send(request{method: "PUT", url: address, body: patient(0)}).status).To(Equal(http.StatusCreated))
		for round := 1; round <= 5; round++ {
			statuses := race(64, request{
				method: "PUT", url: address, body: patient(round),
				header: map[string]string{"If-Match": fmt.Sprintf(`W/"%d"`, round)},
			})
			Expect(statuses).To(Equal(map[int]int{http.StatusOK: 1, http.StatusPreconditionFailed: 63}))
		}
		Expect(send(request{method: "GET", url: address}).header.Get("ETag")).To(Equal(`W/"6"`))
	})

	It("let one of 64 writers with If-None-Match: * create", func() {
		for round := range 5 {
			statuses := race(64, request{
				method: "PUT", url: fmt.Sprintf("%s/raced-create-%d", patients, round), body: patient(round),
				header: map[string]string{"If-None-Match": "*"},
			})
			Expect(statuses).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusPreconditionFailed: 63}))
		}
	})

	It("let one of 64 creates with the same If-None-Exist make the record", func() {
		for round := range 3 {
			statuses := race(64, request{
				method: "POST", url: patients,
				body:   fmt.Sprintf(`{"resourceType":"Patient","identifier":[{"system":"urn:chip","value":"race-%d"}]}`, round),
				header: map[string]string{"If-None-Exist": fmt.Sprintf("identifier=urn:chip|race-%d", round)},
			})
			Expect(statuses).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusOK: 63}))
			for _, base := range paddock.URLs {
				Eventually(func() any {
					return send(request{method: "GET", url: fmt.Sprintf("%s/patient?identifier=race-%d", base+fhir, round)}).field("total")
				}).Within(time.Second).ProbeEvery(5 * time.Millisecond).Should(BeEquivalentTo(1))
			}
		}
	})

	It("keep ids that differ only in case as one record", func() {
		spellings := []string{"Case-ID", "case-id", "CASE-ID"}
		for i, id := range spellings {
			answer := send(request{method: "PUT", url: patients + "/" + id, body: patient(i)})
			Expect(answer.field("id")).To(Equal("Case-ID"))
			Expect(answer.field("meta", "versionId")).To(Equal(fmt.Sprint(i + 1)))
		}
		for _, id := range spellings {
			Expect(send(request{method: "GET", url: patients + "/" + id}).field("multipleBirthInteger")).To(BeEquivalentTo(2))
		}
	})

	It("take each other's page tokens, and not those of other queries", func() {
		for i := range 5 {
			send(request{method: "PUT", url: fmt.Sprintf("%s/paged-%d", patients, i), body: patient(i)})
		}
		next := nextLink(send(request{method: "GET", url: paddock.URLs[0] + fhir + "/patient?_count=2"}))
		elsewhere := strings.Replace(next, paddock.PublicURL(), paddock.URLs[1], 1)
		Expect(send(request{method: "GET", url: elsewhere}).status).To(Equal(http.StatusOK))
		Expect(send(request{method: "GET", url: strings.Replace(elsewhere, "/patient?", "/person?", 1)}).status).To(Equal(http.StatusBadRequest))
		Expect(send(request{method: "GET", url: elsewhere + "&_sort=_id"}).status).To(Equal(http.StatusBadRequest))
	})
}

func nextLink(answer response) string {
	GinkgoHelper()
	for _, link := range answer.field("link").([]any) {
		if link := link.(map[string]any); link["relation"] == "next" {
			return link["url"].(string)
		}
	}
	Fail("the answer has no next link: " + string(answer.body))
	return ""
}

// race sends one request n times at once and counts the statuses.
func race(n int, r request) map[int]int {
	GinkgoHelper()
	start := make(chan struct{})
	statuses := make([]int, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			defer GinkgoRecover()
			<-start
			statuses[i] = send(r).status
		})
	}
	close(start)
	group.Wait()
	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}
	return count
}
