package aggregated_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// The callers of the sweep: nurse may not see the hidden records, chief sees everything.
const (
	nurse = "nurse"
	chief = "chief"
)

// question is a request that both sites of a sweep are asked.
type question struct {
	method string
	// path is below the sites' namespaces, or starts with /apis.
	path string
	// accept and contentType are headers. Without an accept the answer is in JSON.
	accept, contentType, body string
}

// String describes the question in failures.
func (q question) String() string {
	return fmt.Sprintf("%s %s %s %s %.200s", q.method, q.path, q.accept, q.contentType, q.body)
}

// rehearsed reports whether the question changes nothing.
func (q question) rehearsed() bool {
	return q.method == http.MethodGet || q.method == http.MethodHead || strings.Contains(q.path, "dryRun=All")
}

// namesHidden reports whether the question names the id of a hidden record.
func (q question) namesHidden() bool {
	return slices.ContainsFunc(hiddenNames, func(name string) bool { return strings.Contains(q.path+q.body, name) })
}

// twins are two sites with the same visible records. The first has hidden ones as well.
type twins struct {
	with, without string
	clients       map[string]*http.Client
	// identities replace UID:<name> and VERSION:<name> of hidden Patients in questions.
	identities []string
	// doors are what the API says that it takes.
	doors doors
	// asked are the doors that questions went through, telling those that showed chief the
	// difference between the sites.
	asked, telling map[string]bool
	// admitted counts the differences that the documentation admits, by name.
	admitted    map[string]int
	differences []string
}

// openTwins opens two sites that exist, as nurse and chief.
func openTwins(ctx context.Context, with, without string) *twins {
	GinkgoHelper()
	t := &twins{
		with: with, without: without, clients: map[string]*http.Client{}, doors: servedDoors(ctx),
		asked: map[string]bool{}, telling: map[string]bool{}, admitted: map[string]int{},
	}
	for user, groups := range map[string][]string{nurse: {"nurses"}, chief: {"system:masters", "chiefs"}} {
		config := rest.CopyConfig(cluster.Config())
		config.QPS = -1
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		client, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		t.clients[user] = client
	}
	return t
}

// ask asks one of the sites.
func (t *twins) ask(ctx context.Context, user, site string, q question) response {
	GinkgoHelper()
	path := strings.NewReplacer(append(t.identities, "SITE", site)...).Replace(q.path)
	if !strings.HasPrefix(path, "/apis") {
		path = group + "/namespaces/" + site + path
	}
	body := strings.NewReplacer(append(t.identities, "SITE", site)...).Replace(q.body)
	request, err := http.NewRequestWithContext(ctx, q.method, cluster.Config().Host+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json")
	if q.accept != "" {
		request.Header.Set("Accept", q.accept)
	}
	if q.contentType != "" {
		request.Header.Set("Content-Type", q.contentType)
	}
	answer, err := t.clients[user].Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return response{answer.StatusCode, answer.Header, text}
}

// pages is the answer to a question with, where it is a page of a list, those to all further pages.
func (t *twins) pages(ctx context.Context, user, site string, q question) (text string, first response) {
	GinkgoHelper()
	first = t.ask(ctx, user, site, q)
	answer, text := first, t.normal(site, first)
	for range 20 {
		token := continueToken.FindSubmatch(answer.body)
		if token == nil || !strings.Contains(q.path, "limit=") || strings.Contains(q.path, "continue=") {
			break
		}
		next := q
		next.path += "&continue=" + string(token[1])
		answer = t.ask(ctx, user, site, next)
		text += "\n" + t.normal(site, answer)
	}
	return text, first
}

var continueToken = regexp.MustCompile(`"continue":"([^"]+)"`)

// normals take out of an answer what differs between two sites for good reason: times, ids that the
// server chose, tokens, and how old a record is.
var normals = []struct {
	found *regexp.Regexp
	put   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [0-9:]{8} GMT`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`W/"[0-9a-f]{16}"`), "METADATA"}, // of the capability statement, which names the site
	{regexp.MustCompile(`("?resourceVersion"?: ?)"?[a-z0-9.]+"?`), "${1}VERSION"},
	{regexp.MustCompile(`"continue":"[^"]+"`), "CONTINUE"},
	{regexp.MustCompile(`_page_token=[A-Za-z0-9_%-]+`), "TOKEN"},
	{regexp.MustCompile(`"(\d+d)?(\d+h)?(\d+m)?(\d+s)?"(\s*\])`), "AGE$5"},
	{regexp.MustCompile(`made-[a-z0-9]{5}`), "MADE"},
}

// normal writes an answer without what differs for good reason.
func (t *twins) normal(site string, answer response) string {
	var text strings.Builder
	fmt.Fprintln(&text, answer.status)
	for _, name := range []string{"Allow", "Content-Type", "Etag", "Last-Modified", "Link", "Location", "Retry-After", "Vary", "Warning"} {
		fmt.Fprintln(&text, name, answer.header.Values(name))
	}
	text.Write(answer.body)
	said := strings.ReplaceAll(text.String(), site, "SITE")
	for _, normal := range normals {
		said = normal.found.ReplaceAllString(said, normal.put)
	}
	return said
}

// both asks the two sites at the same time.
func (t *twins) both(ask func(site string) string) (with, without string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer GinkgoRecover()
		with = ask(t.with)
	}()
	without = ask(t.without)
	<-done
	return with, without
}

// compare asks both sites, and notes a difference. It takes away what they created.
func (t *twins) compare(ctx context.Context, q question) {
	GinkgoHelper()
	through := t.doors.of(q)
	with, without := t.both(func(site string) string {
		text, first := t.pages(ctx, nurse, site, q)
		t.undo(ctx, site, q, first)
		return text
	})
	for _, door := range through {
		t.asked[door] = true
		if q.rehearsed() && !t.telling[door] && !isBlunt(door) {
			known, unknown := t.both(func(site string) string {
				text, _ := t.pages(ctx, chief, site, q)
				return text
			})
			t.telling[door] = known != unknown
		}
	}
	if with == without {
		return
	}
	for _, each := range admittedDifferences {
		if each.admits(q, with) {
			t.admitted[each.name]++
			return
		}
	}
	t.differences = append(t.differences, fmt.Sprintf("%s\n--- with the hidden records:\n%.900s\n--- without:\n%.900s", q, with, without))
}

// undo deletes what the answer says was created.
func (t *twins) undo(ctx context.Context, site string, q question, answer response) {
	GinkgoHelper()
	if answer.status != http.StatusCreated || q.rehearsed() {
		return
	}
	plural := strings.Split(strings.Trim(q.path, "/"), "/")[0]
	plural, _, _ = strings.Cut(plural, "?")
	name, _ := at(decoded(answer.body), "#/metadata/name").(string)
	if plural == "facades" {
		plural, name = "patients", at(decoded(answer.body), "#/id").(string)
	}
	deleted := t.ask(ctx, chief, site, question{method: http.MethodDelete, path: "/" + plural + "/" + name})
	Expect(deleted.status).To(Equal(http.StatusOK), "%s: %s", q, deleted.body)
}

// expectEqual asks both sites, and expects no differences.
func (t *twins) expectEqual(ctx context.Context, questions []question) {
	GinkgoHelper()
	before := len(t.differences)
	for _, q := range questions {
		t.compare(ctx, q)
	}
	if found := t.differences[before:]; len(found) > 0 {
		Fail(fmt.Sprintf("%d differences, the first of them:\n%s", len(found), strings.Join(found[:min(4, len(found))], "\n\n")))
	}
}
