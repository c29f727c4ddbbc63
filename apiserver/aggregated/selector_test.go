package aggregated_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// manySpecs select few of more records than a store is asked for at once.
func manySpecs(at *tenant) {
	It("selects few of many by labels", func(ctx SpecContext) {
		for from := 0; from < 1200; from += 600 {
			var entries []string
			for n := from; n < from+600; n++ {
				id := fmt.Sprintf("many%04d", n)
				entries = append(entries, `{"request":{"method":"PUT","url":"Patient/`+id+`"},"resource":{"resourceType":"Patient","id":"`+id+`"}}`)
			}
			answer := send(ctx, http.MethodPost, strings.TrimSuffix(siteURL(at.namespace), "/patient"), at.token,
				`{"resourceType":"Bundle","type":"batch","entry":[`+strings.Join(entries, ",")+`]}`)
			Expect(answer.status).To(Equal(http.StatusOK), "%.300s", answer.body)
		}
		want := []string{"many0000", "many0499", "many0500", "many0501", "many1199"}
		for _, name := range want {
			at.kubectl(ctx, "label", "patient", name, "few=of-many")
		}
		for _, chunk := range []string{"0", "1", "2", "5", "500"} {
			Expect(strings.Fields(at.kubectl(ctx, "get", "patients", "-l", "few=of-many", "--chunk-size="+chunk, "-o", "custom-columns=N:.metadata.name", "--no-headers"))).
				To(Equal(want), "chunks of %s", chunk)
		}
	})
}
