package fhir_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// admittedDifference is a difference between the sites that the documentation admits.
type admittedDifference struct {
	name, reason string
	// only is where it is, empty for both engines.
	only   string
	admits func(q question, with, without string) bool
}

// admittedDifferences are all there are. A question must meet each of them.
var admittedDifferences = []admittedDifference{
	{
		"the id is taken", "where clients choose ids, an id that a hidden record has cannot be given to another one", "",
		func(q question, with, _ string) bool {
			return q.header.Get("If-None-Match") == "" && q.header.Get(headerFixedIDs) == "" && strings.Contains(with, `"id_taken"`) && namesHidden(q)
		},
	},
	{
		"If-None-Match: *", "a creation under an id of the client's choice that must not exist fails where a hidden record has the id", "",
		func(q question, with, _ string) bool {
			return q.header.Get("If-None-Match") == "*" && q.header.Get(headerFixedIDs) == "" && strings.Contains(with, `"id_taken"`) && namesHidden(q)
		},
	},
	{
		"Enforce's refusal", "a site that enforces references does not delete what only hidden records refer to", "Postgres",
		func(q question, with, _ string) bool {
			return strings.Contains(with, `"still_referenced"`) && strings.Contains(with, "referenced by other records;") && !namesHidden(q)
		},
	},
	{
		"the storage is full", "hidden records take room", "a full site",
		func(_ question, with, without string) bool {
			return strings.Contains(with, `"storage_full"`) && strings.HasPrefix(without, "201\n")
		},
	},
}

// namesHidden reports whether a question names the id of a hidden record.
func namesHidden(q question) bool {
	return slices.ContainsFunc(append([]string{"linked"}, hiddenIDs...), func(id string) bool { return strings.Contains(q.path+q.body, id) })
}

var _ = Describe("What a caller may not see", func() {
	for engine, open := range newSites {
		Describe("in "+engine, Ordered, ContinueOnFailure, func() {
			var both *twins
			var stored map[store.Key]string
			BeforeAll(func(ctx context.Context) {
				both = openTwins(ctx, open, allTypes(), openPolicy, nil)
				stored = both.stored(ctx)
			})
			expectEqual := func(questions []question) {
				GinkgoHelper()
				before := len(both.differences)
				for _, q := range questions {
					both.compare(q)
				}
				both.expectNoneSince(before)
			}
			for _, kind := range allTypes() {
				It("is not told of by any parameter of "+kind, func() { expectEqual(both.parameterQuestions(kind)) })
				It("is not told of by an order, a total or a page of "+kind, func() { expectEqual(both.controlQuestions(kind)) })
				It("is not told of by chains, _has and includes of "+kind, func() { expectEqual(joinQuestions(kind)) })
				It("is not told of by reads, histories and compartments of "+kind, func() { expectEqual(readQuestions(kind)) })
			}
			It("is not told of by searches and the history of the site", func() { expectEqual(siteQuestions()) })
			It("is not told of by page tokens of others", func() { expectEqual(both.tokenQuestions()) })
			for _, kind := range allTypes() {
				It("is not told of nor changed by writes of a "+kind, func(ctx context.Context) {
					before := len(both.differences)
					for _, id := range idsToWrite(kind) {
						for _, q := range writesOf(kind, id, kind == "Patient" && (id == "hidden-r" || id == "dead") || kind == "Device" && id == "linked") {
							both.compareWrite(ctx, q, kind)
						}
					}
					both.compareRecords(kind)
					both.expectNoneSince(before)
				})
			}
			It("is not told of nor changed by references to it", func(ctx context.Context) {
				before := len(both.differences)
				for _, q := range referenceWrites() {
					both.compareWrite(ctx, q, "Organization")
				}
				both.compareRecords("Organization")
				both.expectNoneSince(before)
			})
			It("is as it was", func(ctx context.Context) { Expect(both.stored(ctx)).To(Equal(stored)) })
			It("is told to who may see it by each kind of question", func() {
				Expect(both.telling).NotTo(BeEmpty())
				var silent []string
				for covers, tells := range both.telling {
					if !tells && !blunt(covers) {
						silent = append(silent, covers)
					}
				}
				Expect(silent).To(BeEmpty(), "no question about these is answered differently to a privileged caller")
			})
			It("is asked about at each route by each method, and by each parameter of a history", func() {
				Expect(both.with.known("Patient/_history", "nosuch=x", `supported parameters: (.*?)"`)).To(ConsistOf(historyControls))
				for _, door := range both.doors() {
					Expect(both.asked[door]).To(BeTrue(), "the sweep has no question at %s", door)
				}
				for _, kind := range allTypes() {
					for _, p := range search.ParametersOf(kind) {
						Expect(both.asked[kind+"."+p.Name]).To(BeTrue(), "the sweep has no question about %s.%s", kind, p.Name)
					}
				}
			})
			It("differs only in what is admitted", func() {
				Expect(both.differences).To(BeEmpty())
				for _, each := range admittedDifferences {
					Expect(both.admitted[each.name] > 0 || each.only != "" && each.only != engine).To(BeTrue(), "no question meets the difference %q", each.name)
				}
			})
		})
	}

	It("is told of by the room that it takes, where the storage is full", func(ctx context.Context) {
		visible := len(visibleIDs) - 1   // the last is deleted
		hidden := len(hiddenIDs) - 2 + 1 // two are deleted, and one more claims criteria
		full := cluster.DefaultLimits
		full.MaxRecords = int64(visible + hidden)
		both := openTwins(ctx, func(ctx context.Context, changes ...func(*fhir.Endpoint)) site {
			return newLimitedSite(ctx, full, changes...)
		}, []string{"Patient"}, openPolicy, nil)
		both.compare(question{method: "POST", path: "/Patient", body: `{"resourceType":"Patient"}`})
		both.expectNoneSince(0)
		Expect(both.admitted).To(HaveKeyWithValue("the storage is full", 1))
	})
})

// doors are the methods and routes of the facade, by its table of routes and the methods that it
// says each one takes.
func (b *twins) doors() []string {
	GinkgoHelper()
	var doors []string
	seen := map[string]bool{}
	err := chi.Walk(facadeRoutes, func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := strings.TrimPrefix(route, "/site/{siteId}/fhir")
		if seen[path] {
			return nil
		}
		seen[path] = true
		kind := "Patient"
		if strings.HasPrefix(path, "/{type}/{id}/") && strings.HasSuffix(path, "export") { // $ or %24
			kind = "Group" // the type that has this operation
		}
		a := b.with.ask(question{method: "TRACE", path: strings.NewReplacer("{type}", kind, "{id}", "seen-a", "{vid}", "1", "{members}", "*").Replace(path)})
		Expect(a.status).To(Equal(http.StatusMethodNotAllowed), "%s: %s", route, a.body)
		for method := range strings.SplitSeq(a.header.Get("Allow"), ", ") {
			if method == "" { // a path that takes no method
				continue
			}
			doors = append(doors, method+" "+strings.TrimSuffix(route, "/"))
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(len(doors)).To(BeNumerically(">", 30))
	return doors
}

// expectNoneSince expects no further differences.
func (b *twins) expectNoneSince(before int) {
	GinkgoHelper()
	found := b.differences[before:]
	Expect(found).To(BeEmpty(), "the first of them:\n%s", strings.Join(found[:min(4, len(found))], "\n\n"))
}

// idsToWrite are the ids of hidden records of a type to try to write.
func idsToWrite(kind string) []string {
	switch kind {
	case "Patient":
		return hiddenIDs
	case "Device", "DeviceMetric":
		return []string{"hidden-r", "linked"}
	}
	return []string{"hidden-r"}
}

// tokenQuestions are searches and histories with page tokens that were made for another caller,
// for another site, or under other rules.
func (b *twins) tokenQuestions() []question {
	GinkgoHelper()
	var questions []question
	for _, path := range []string{"/Patient?_count=1", "/Patient?_count=1&_sort=name", "/?_count=1", "/Patient/_history?_count=1", "/_history?_count=1", "/Patient/seen-c/_history?_count=1", "/Patient/seen-a/$everything?_count=1"} {
		for _, t := range []*twin{b.with, b.without} {
			for _, caller := range []string{chief, nurse} {
				a := t.ask(question{method: "GET", path: path, header: header("X-Caller", caller)})
				token := pageToken.FindStringSubmatch(a.body)
				Expect(token).NotTo(BeNil(), a.body)
				q := question{method: "GET", path: path + "&_page_token=" + token[1]}
				Expect(t.ask(question{method: "GET", path: q.path, header: header("X-Caller", caller)}).status).To(Equal(http.StatusOK))
				if caller == chief || t == b.without {
					Expect(b.with.ask(q).status).To(Equal(http.StatusBadRequest))
				}
				if strings.HasPrefix(path, "/Patient?") {
					status := map[string]int{chief: http.StatusOK, nurse: http.StatusBadRequest}[caller]
					Expect(t.ask(question{method: "GET", path: q.path, header: header("X-Caller", caller, headerRules, "1")}).status).To(Equal(status))
				}
				if caller == chief {
					questions = append(questions, q)
				}
			}
		}
	}
	return questions
}

var pageToken = regexp.MustCompile(`"relation":"next","url":"[^"]*_page_token=([^"&\\]+)`)
