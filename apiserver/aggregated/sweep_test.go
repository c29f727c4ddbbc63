package aggregated_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// admittedDifference is a difference between the sites that the documentation admits.
type admittedDifference struct {
	name string
	// only is the storage where it is, empty for both.
	only   string
	admits func(q question, with string) bool
}

// admittedDifferences are all there are. A question must meet each of them.
var admittedDifferences = []admittedDifference{
	{"the name is taken", "", func(q question, with string) bool {
		return (q.method == http.MethodPost || q.method == http.MethodPatch) && strings.HasPrefix(with, "409\n") && strings.Contains(with, `"AlreadyExists"`) && q.namesHidden()
	}},
	{"the id is taken", "", func(q question, with string) bool {
		return q.method == http.MethodPut && strings.HasPrefix(with, "409\n") && strings.Contains(with, `"id_taken"`) && q.namesHidden()
	}},
	{"Enforce's refusal", "Postgres", func(q question, with string) bool {
		return q.method == http.MethodDelete && strings.HasPrefix(with, "409\n") && strings.Contains(with, "referenced by other records;") && !q.namesHidden()
	}},
}

// blunt are the doors that show no one which records there are: they refuse every request, or serve
// no record that privacy rules protect.
var blunt = []*regexp.Regexp{
	regexp.MustCompile(`^GET ` + group + `/[a-z]+$`),                                    // lists across namespaces are refused
	regexp.MustCompile(`^GET ` + group + `/\{kind\} \?`),                                // with all their parameters
	regexp.MustCompile(` \?ignoreStoreReadError`),                                       // does not go with a rehearsal
	regexp.MustCompile(`/facades/.* \?path$`),                                           // the rest of the path, whatever the query says
	regexp.MustCompile(` \?(watch|sendInitialEvents|shardSelector)$`),                   // not served
	regexp.MustCompile(` application/(strategic-merge-patch\+json|apply-patch\+cbor)$`), // not taken
	regexp.MustCompile(`/facades/\{name\}(/ahds.*)?( |$)`),                              // no record of FHIR
	regexp.MustCompile(`(PUT|PATCH|DELETE) .*/facades/`),                                // FHIR has no rehearsals, which alone are put to chief
	regexp.MustCompile(`POST .*/facades/`),
	regexp.MustCompile(`^HEAD .*/facades/\{name\}/fhir$`), // has no body, and its headers describe no record
	regexp.MustCompile(`^[a-z]+ facades`),                 // verbs of the same
}

func isBlunt(door string) bool {
	return slices.ContainsFunc(blunt, func(pattern *regexp.Regexp) bool { return pattern.MatchString(door) })
}

const sweepSite = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: nurse, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nurse}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  deletionPolicy: Delete
  privacy: {rules: [{name: secret, match: {tag: [{system: "urn:tags", code: secret}]}, deny: {groups: ["kubernetes:nurses"]}}]}
%[2]s
`

const sweepStorage = `
  fhir: {referentialIntegrity: Enforce}
  storage: {type: Postgres, postgres: {external: {secretRef: {name: sweep-db}}}}
`

// sweepDatabase makes a database for the sites of a sweep, and returns how to reach it.
func sweepDatabase(ctx context.Context) string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "paddock-aggregation-sweep")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Secure: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	_, err = server.CreateDatabase(ctx, "sweep", "first")
	Expect(err).NotTo(HaveOccurred())
	uri, err := url.Parse(server.URL("sweep"))
	Expect(err).NotTo(HaveOccurred())
	uri.User, uri.RawQuery = url.UserPassword("sweep", "first"), ""
	return uri.String()
}

// startTwins makes two sites in one storage.
func startTwins(ctx context.Context, storage string) *twins {
	GinkgoHelper()
	settings, prefix, uri := "", "objects", ""
	if storage == "Postgres" {
		settings, prefix, uri = sweepStorage, "rows", sweepDatabase(ctx)
	}
	t := openTwins(ctx, prefix+"-with", prefix+"-none")
	for _, site := range []string{t.with, t.without} {
		apply(ctx, fmt.Sprintf(sweepSite, site, settings))
		if uri != "" {
			must(ctx, "create", "secret", "generic", "sweep-db", "-n", site, "--type=paddock.health/dsn", "--from-literal=uri="+uri)
		}
	}
	for _, site := range []string{t.with, t.without} {
		must(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", site, "site/"+site)
		for _, user := range []string{nurse, chief} {
			Eventually(func() int {
				return t.ask(ctx, user, site, question{method: http.MethodGet, path: "/patients"}).status
			}).WithContext(ctx).Should(Equal(http.StatusOK))
		}
	}
	return t
}

// fill writes the records of the sweep as chief.
func (t *twins) fill(ctx context.Context) {
	GinkgoHelper()
	write := func(site, kind, plural, name, labels, spec string) {
		GinkgoHelper()
		answer := t.ask(ctx, chief, site, question{
			method: http.MethodPost, path: "/" + plural + "?fieldManager=filler", contentType: "application/json",
			body: sweptObject(kind, `"name":"`+name+`","labels":{`+labels+`}`, spec),
		})
		Expect(answer.status).To(Equal(http.StatusCreated), "%s/%s: %s", kind, name, answer.body)
	}
	change := func(method, path, body string) {
		GinkgoHelper()
		answer := t.ask(ctx, chief, t.with, question{method: method, path: path, contentType: "application/merge-patch+json", body: body})
		Expect(answer.status).To(Equal(http.StatusOK), "%s: %s", path, answer.body)
	}
	const hidden = `"word":"xylo","only":"hidden"`
	for _, site := range []string{t.with, t.without} {
		for _, kind := range kinds {
			write(site, kind.kind, kind.plural, "seen-a", `"word":"xylo"`, labelNone)
			write(site, kind.kind, kind.plural, "seen-b", `"word":"quartz"`, labelNone)
		}
		write(site, "Organization", "organizations", "referred", "", labelNone)
	}
	for _, kind := range kinds {
		write(t.with, kind.kind, kind.plural, "hidden-r", hidden, labelR)
		write(t.with, kind.kind, kind.plural, "tagged", hidden, labelSecret)
		if thorough(kind.kind) {
			write(t.with, kind.kind, kind.plural, "raised", hidden, labelNone)
			change(http.MethodPatch, "/"+kind.plural+"/raised", `{"spec":{`+labelR+`}}`)
			write(t.with, kind.kind, kind.plural, "dead", hidden, labelR)
			change(http.MethodDelete, "/"+kind.plural+"/dead", "")
		}
	}
	write(t.with, "Patient", "patients", "linked", hidden, labelR)
	write(t.with, "Organization", "organizations", "referring", hidden, labelR+`,"partOf":{"reference":"Organization/referred"}`)
	write(t.with, "Device", "devices", "linked", hidden, labelNone+`,"patient":{"reference":"Patient/hidden-r"}`)
	absolute := paddock.PublicURL() + "/site/" + t.with + "/fhir/Patient/hidden-r"
	write(t.with, "Device", "devices", "distant", hidden, labelNone+`,"patient":{"reference":"`+absolute+`"}`)
	write(t.with, "DeviceMetric", "devicemetrics", "linked", hidden, labelNone+`,"source":{"reference":"Device/linked"}`)
	for _, name := range []string{"hidden-r"} {
		record := decoded(t.ask(ctx, chief, t.with, question{method: http.MethodGet, path: "/patients/" + name}).body)
		t.identities = append(t.identities, "UID:"+name, at(record, "#/metadata/uid").(string), "VERSION:"+name, at(record, "#/metadata/resourceVersion").(string))
	}
}

// hidden are the hidden records as chief sees them.
func (t *twins) hidden(ctx context.Context) string {
	GinkgoHelper()
	var all strings.Builder
	for _, kind := range kinds {
		answer := t.ask(ctx, chief, t.with, question{method: http.MethodGet, path: "/" + kind.plural + "?labelSelector=only%3Dhidden"})
		Expect(answer.status).To(Equal(http.StatusOK))
		all.Write(answer.body)
	}
	return all.String()
}

var _ = Describe("What a caller may not see", func() {
	for _, storage := range []string{"Cluster", "Postgres"} {
		Describe("with storage "+storage, Ordered, ContinueOnFailure, func() {
			var both *twins
			var stored string
			BeforeAll(func(ctx SpecContext) {
				both = startTwins(ctx, storage)
				both.fill(ctx)
				stored = both.hidden(ctx)
			})
			It("is not shown by the other APIs behind kube-apiserver", func(ctx SpecContext) { both.expectEqual(ctx, facadeQuestions()) })
			It("is not shown by reads and lists", func(ctx SpecContext) {
				for _, kind := range kinds {
					both.expectEqual(ctx, readQuestions(kind.kind, kind.plural))
				}
			})
			It("is not shown by continue tokens of other callers and sites", func(ctx SpecContext) { both.expectEqual(ctx, both.tokenQuestions(ctx)) })
			It("is neither shown nor changed by writes", func(ctx SpecContext) {
				for _, kind := range kinds {
					both.expectEqual(ctx, writeQuestions(kind.kind, kind.plural))
				}
			})
			It("is not shown by references to it, nor by those it has", func(ctx SpecContext) { both.expectEqual(ctx, referenceQuestions()) })
			It("is as it was", func(ctx SpecContext) { Expect(both.hidden(ctx)).To(Equal(stored)) })
			It("is asked about by each verb, path, parameter and media type that the API serves", func() {
				for _, door := range both.doors.all {
					Expect(both.asked[door]).To(BeTrue(), "the sweep has no question through %s", door)
				}
			})
			It("is shown to a caller who may see it through each of them", func() {
				var silent []string
				for door := range both.asked {
					if !both.telling[door] && slices.Contains(both.doors.all, door) && !isBlunt(door) {
						silent = append(silent, door)
					}
				}
				slices.Sort(silent)
				Expect(silent).To(BeEmpty())
			})
			It("differs only in what is admitted", func() {
				Expect(both.differences).To(BeEmpty())
				for _, each := range admittedDifferences {
					Expect(both.admitted[each.name] > 0 || each.only != "" && each.only != storage).To(BeTrue(), "no question meets the difference %q", each.name)
				}
			})
		})
	}
})

// tokenQuestions are lists with continue tokens that another caller or another site was given.
func (t *twins) tokenQuestions(ctx context.Context) []question {
	GinkgoHelper()
	var questions []question
	list := question{method: http.MethodGet, path: "/patients?limit=1"}
	for _, site := range []string{t.with, t.without} {
		for _, user := range []string{chief, nurse} {
			answer := t.ask(ctx, user, site, list)
			token := continueToken.FindSubmatch(answer.body)
			Expect(token).NotTo(BeNil(), "%s", answer.body)
			q := list
			q.path += "&continue=" + string(token[1])
			Expect(t.ask(ctx, user, site, q).status).To(Equal(http.StatusOK))
			for _, other := range []string{t.with, t.without} {
				if user == chief || other != site {
					Expect(t.ask(ctx, nurse, other, q).status).To(Equal(http.StatusBadRequest))
				}
			}
			if user == chief {
				questions = append(questions, q)
			}
		}
	}
	return questions
}

// referenceQuestions write records that refer to hidden ones, and delete what a hidden one refers to.
func referenceQuestions() []question {
	var questions []question
	for _, name := range append([]string{"never"}, hiddenNames...) {
		for _, dry := range []string{"?dryRun=All", ""} {
			questions = append(questions, question{
				method: http.MethodPost, path: "/organizations" + dry, contentType: "application/json",
				body: sweptObject("Organization", `"generateName":"made-"`, `"partOf":{"reference":"Organization/`+name+`"}`),
			}, question{
				method: http.MethodPost, path: "/devices" + dry, contentType: "application/json",
				body: sweptObject("Device", `"generateName":"made-"`, `"patient":{"reference":"Patient/`+name+`"}`),
			})
		}
	}
	return append(questions, question{method: http.MethodDelete, path: "/organizations/referred"}) // the last one: only one site deletes it
}
