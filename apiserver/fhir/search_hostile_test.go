package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A hostile search", Ordered, ContinueOnFailure, func() {
	var s searching
	BeforeAll(func(ctx context.Context) {
		s = newClinic(ctx)
		const patients = 100
		entries := make([]string, patients)
		for i := range entries { // everybody is linked with everybody nearby
			links := make([]string, 5)
			for j := range links {
				links[j] = fmt.Sprintf(`{"other":{"reference":"Patient/many%d"},"type":"seealso"}`, (i+j+1)%patients)
			}
			id := fmt.Sprintf("many%d", i)
			entries[i] = asks("PUT", "Patient/"+id, `{"resourceType":"Patient","id":"`+id+`","active":true,"name":[{"family":"%_*.^[("}],"link":[`+strings.Join(links, ",")+`]}`)
		}
		Expect(s.do("POST", "", bundleOf("batch", entries...), sendFHIR).status).To(Equal(http.StatusOK))
	})
	many := func(n int, value func(int) string) string {
		values := make([]string, n)
		for i := range values {
			values[i] = value(i)
		}
		return strings.Join(values, ",")
	}
	numbered := func(i int) string { return fmt.Sprint("v", i) }

	// soon answers a search, or a form of it, which must not take long. The server is in this process, so the
	// time is that of the processor, which other work on the machine does not change.
	soon := func(search string, parameters url.Values) answer {
		GinkgoHelper()
		before := processorTime(GinkgoTB())
		a := s.do("POST", "/"+search+"/_search", parameters.Encode(), with("Content-Type", "application/x-www-form-urlencoded"), acceptFHIR)
		Expect(processorTime(GinkgoTB()) - before).To(BeNumerically("<", 3*time.Second))
		expectValid(a)
		return a
	}
	DescribeTable("is answered as any other, and soon", func(parameters func() url.Values, matches func() any) {
		a := soon("Patient", parameters())
		Expect(a.status).To(Equal(http.StatusOK), a.body)
		Expect(a.json()).To(HaveKeyWithValue("total", matches()))
	},
		Entry("of a thousand values", func() url.Values { return url.Values{"identifier": {many(999, numbered) + ",a1"}} }, func() any { return BeEquivalentTo(1) }),
		Entry("of a thousand ids", func() url.Values { return url.Values{"_id": {many(999, numbered) + ",luna"}} }, func() any { return BeEquivalentTo(1) }),
		Entry("of a thousand that none may be", func() url.Values { return url.Values{"identifier:not": {many(1000, numbered)}} }, func() any { return BeEquivalentTo(104) }),
		Entry("of a hundred parameters", func() url.Values { return url.Values{"family": strings.Split(strings.Repeat("S,", 98)+"S", ",")} }, func() any { return BeEquivalentTo(2) }),
		Entry("with the longest chain through a thicket", func() url.Values { return url.Values{strings.Repeat("link:Patient.", 5) + "active": {"true"}} }, func() any { return BeEquivalentTo(100) }),
		Entry("with the deepest _has through a thicket", func() url.Values { return url.Values{strings.Repeat("_has:Patient:link:", 5) + "active": {"true"}} }, func() any { return BeEquivalentTo(100) }),
		Entry("with both at once", func() url.Values {
			return url.Values{strings.Repeat("link:Patient._has:Patient:link:", 5) + "active": {"true"}}
		}, func() any { return BeEquivalentTo(100) }),
		Entry("with a giant _count", func() url.Values { return url.Values{"_count": {strings.Repeat("9", 2000)}} }, func() any { return BeEquivalentTo(104) }),
		Entry("with includes that go in cycles", func() url.Values {
			return url.Values{"_id": {"many0"}, "_include:iterate": {"*"}, "_revinclude:iterate": {"*"}}
		}, func() any { return BeEquivalentTo(1) }),
		Entry("for what looks like a pattern", func() url.Values { return url.Values{"name": {`%_*.^[(`}} }, func() any { return BeEquivalentTo(100) }),
		Entry("for a pattern that matches anything, were it one", func() url.Values { return url.Values{"name:contains": {`.*`}} }, func() any { return BeEquivalentTo(0) }),
		Entry("for a quote and a comment", func() url.Values { return url.Values{"name": {`' OR 1=1 --`}, "identifier": {`"; DROP TABLE records`}} }, func() any { return BeEquivalentTo(0) }),
		Entry("for a NUL", func() url.Values { return url.Values{"name": {"\x00"}, "identifier": {"\x00|\x00"}} }, func() any { return BeEquivalentTo(0) }),
		Entry("for text from right to left", func() url.Values { return url.Values{"name": {"\u202ehtimS"}} }, func() any { return BeEquivalentTo(0) }),
		Entry("for a letter with a thousand accents", func() url.Values { return url.Values{"name": {"s" + strings.Repeat("\u0301", 1000) + "mith"}} }, func() any { return BeEquivalentTo(1) }),
		Entry("for a ligature that folds to many", func() url.Values { return url.Values{"name": {strings.Repeat("\ufdfa", 600)}} }, func() any { return BeEquivalentTo(0) }),
		Entry("in another normal form", func() url.Values { return url.Values{"family": {"mu\u0308ller"}} }, func() any { return BeEquivalentTo(1) }),
		Entry("in wide letters", func() url.Values { return url.Values{"family": {"Ｓｍｉｔｈ"}} }, func() any { return BeEquivalentTo(1) }),
		Entry("of the year 1 and of the year 9999", func() url.Values {
			return url.Values{"birthdate": {"gt0001,ap9999", "lt9999-12-31T23:59:59.999999999+14:00"}}
		}, func() any { return BeEquivalentTo(2) }),
	)

	DescribeTable("is refused, soon and clearly", func(parameters func() url.Values, diagnostics string) {
		a := soon("Patient", parameters())
		Expect(a.status).To(Equal(http.StatusBadRequest), a.body)
		Expect(a.body).To(ContainSubstring(diagnostics))
		Expect(len(a.body)).To(BeNumerically("<", 100_000), "what was sent is not all sent back")
	},
		Entry("of more than a thousand values", func() url.Values { return url.Values{"identifier": {many(1001, numbered)}} }, "more than 1000 values"),
		Entry("of a million commas", func() url.Values { return url.Values{"identifier": {strings.Repeat(",", 1_000_000)}} }, "longer than 64 KiB"),
		Entry("of commas", func() url.Values { return url.Values{"identifier": {strings.Repeat(",", 60_000)}} }, "has an empty item"),
		Entry("of too many parameters", func() url.Values { return url.Values{"name": make([]string, 101)} }, "there are 101 parameters"),
		Entry("with too long a chain", func() url.Values { return url.Values{strings.Repeat("link:Patient.", 6) + "active": {"true"}} }, "more than 5 links"),
		Entry("with an endless chain", func() url.Values { return url.Values{strings.Repeat("link.", 100_000) + "active": {"true"}} }, "more than 5 links"),
		Entry("with too deep a _has", func() url.Values { return url.Values{strings.Repeat("_has:Patient:link:", 6) + "active": {"true"}} }, "more than 5 levels deep"),
		Entry("with an endless _has", func() url.Values {
			return url.Values{strings.Repeat("_has:Patient:link:", 50_000) + "active": {"true"}}
		}, "more than 5 levels deep"),
		Entry("with a chain that branches", func() url.Values { return url.Values{"link.link.link.link.link.identifier": {many(600, numbered)}} }, "more than 1000 values"),
		Entry("with a negative _count", func() url.Values { return url.Values{"_count": {"-9223372036854775808"}} }, "is not a number of items"),
		Entry("with digits of another script", func() url.Values { return url.Values{"_count": {"٣"}} }, "is not a number of items"),
		Entry("for what is not UTF-8", func() url.Values { return url.Values{"name": {"\xff\xfe"}, "identifier": {"\xff"}} }, "not valid UTF-8"),
		Entry("with a name that is not UTF-8", func() url.Values { return url.Values{"\xff": {"x"}} }, "is not known"),
		Entry("with a huge name", func() url.Values { return url.Values{strings.Repeat("n", 1_000_000): {"x"}} }, "is not known"),
		Entry("with only accents", func() url.Values { return url.Values{"name": {strings.Repeat("\u0301", 500)}} }, "has only white space or accents"),
		Entry("with a stray backslash", func() url.Values { return url.Values{"name": {strings.Repeat(`\`, 1001)}} }, "must be before"),
		Entry("with a page token of somebody", func() url.Values { return url.Values{"_page_token": {strings.Repeat("A", 2048)}} }, "_page_token"),
		Entry("with a huge page token", func() url.Values { return url.Values{"_page_token": {strings.Repeat("A", 60_000)}} }, "longer than any page token"),
		Entry("for infinity", func() url.Values { return url.Values{"near": {"Infinity|NaN|1e400"}} }, "is not known"),
		Entry("with includes of what is no type", func() url.Values { return url.Values{"_include": {"*:iterate"}} }, "is not a supported resource type"),
		Entry("by too many keys", func() url.Values { return url.Values{"_sort": {strings.Repeat("name,", 10) + "name"}} }, "give at most 10"),
	)

	It("is bounded in its answer too", func() {
		found := s.ask("Patient?_id=many0&_include:iterate=Patient:link&_revinclude:iterate=Patient:link").json()
		Expect(ofMode(found, "match")).To(HaveLen(1))
		Expect(ofMode(found, "include")).To(HaveLen(99), "each once")
	})
})
