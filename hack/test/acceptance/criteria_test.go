package acceptance

import (
	"fmt"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The two API servers learn of each other's records a moment late; what they are
// asked to do by criteria must not show it.
var _ = Describe("Two API servers that are asked by criteria", func() {
	const writers = 32

	// all sends a request made of each number at once, and counts the statuses.
	all := func(ask func(i int) request) map[int]int {
		GinkgoHelper()
		statuses := make([]int, writers)
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() {
				defer GinkgoRecover()
				statuses[i] = send(ask(i)).status
			})
		}
		group.Wait()
		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}
		return count
	}

	It("make one record of many updates, and lose none of them", func() {
		for round := range 3 {
			address := fmt.Sprintf("%s/site/demo/fhir/patient?identifier=urn:chip|criteria-%d", balanced, round)
			body := func(i int) string {
				return fmt.Sprintf(`{"resourceType":"Patient","identifier":[{"system":"urn:chip","value":"criteria-%d"}],"multipleBirthInteger":%d}`, round, i+1)
			}
			updated := all(func(i int) request { return request{method: "PUT", url: address, body: body(i)} })
			Expect(updated).To(Equal(map[int]int{http.StatusCreated: 1, http.StatusOK: writers - 1}))
			Expect(versionOf(address)).To(Equal(fmt.Sprint(writers)))

			By("patches")
			patched := all(func(i int) request {
				return request{
					method: "PATCH", url: address, body: fmt.Sprintf(`[{"op":"replace","path":"/multipleBirthInteger","value":%d}]`, 1000+i),
					header: map[string]string{"Content-Type": "application/json-patch+json"},
				}
			})
			Expect(patched).To(Equal(map[int]int{http.StatusOK: writers}))
			Expect(versionOf(address)).To(Equal(fmt.Sprint(2 * writers)))

			By("and deletes")
			deleted := all(func(int) request { return request{method: "DELETE", url: address} })
			Expect(deleted).To(Equal(map[int]int{http.StatusOK: writers}))
		}
	})
})

// versionOf reads the version of the one record that a search finds.
func versionOf(address string) any {
	GinkgoHelper()
	var version any
	Eventually(func(g Gomega) {
		found := send(request{method: "GET", url: address})
		g.Expect(found.field("total")).To(BeEquivalentTo(1), string(found.body))
		record := found.field("entry").([]any)[0].(map[string]any)["resource"].(map[string]any)
		version = send(request{method: "GET", url: balanced + "/site/demo/fhir/patient/" + record["id"].(string)}).field("meta", "versionId")
	}).Should(Succeed())
	return version
}
