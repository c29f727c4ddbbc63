package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The callers of the sweep: nurse may not see the hidden records, chief sees everything.
const (
	nurse = "nurse"
	chief = "chief"
)

// Headers of the sweep that change the site for a request.
const (
	headerFixedIDs = "X-Fixed-Ids" // no update-as-create
	headerLoose    = "X-Loose"     // references are not enforced
	headerRules    = "X-Rules"     // one more rule
)

// leak makes a gate show what it must not show.
type leak func(gate store.Restricted, raw store.Store) store.Restricted

// twin is one of two sites with the same visible records.
type twin struct {
	site
	policy policy
	// marks are times while it was filled, which questions name as MARK0, MARK1 and so on.
	marks []time.Time
	// hides reports whether it has the hidden records.
	hides bool
	// created are the records that it said to have created lately.
	created []store.Key
	// patience, unless 0, is how long an answer may take. Gates that leak can keep a request trying
	// for as long as requests may last.
	patience time.Duration
}

// openTwin opens a site that shows nurse what the policy allows.
func openTwin(ctx context.Context, open func(context.Context, ...func(*fhir.Endpoint)) site, policy policy, leaking leak) *twin {
	GinkgoHelper()
	t := &twin{site: open(ctx), policy: policy}
	views.Store(t.id, func(r *http.Request, s *fhir.Endpoint) access.Caller {
		s.UpdateCreate = r.Header.Get(headerFixedIDs) == ""
		s.EnforceReferences = s.EnforceReferences && r.Header.Get(headerLoose) == ""
		caller := access.Caller{Name: r.Header.Get("X-Caller"), Groups: []string{r.Header.Get("X-Caller")}}
		if caller.Name == chief {
			return caller
		}
		shown := policy.rules
		if r.Header.Get(headerRules) != "" {
			shown = append(slices.Clone(shown), privacy.Rule{
				Name: "more", Types: []string{"Patient"}, Tags: []privacy.Coding{{Code: otherWord}}, Deny: &privacy.Callers{Groups: []string{"kubernetes:" + nurse}},
			})
		}
		s.Store = gatetest.Open(t.raw, &privacy.View{
			Rules: &privacy.Rules{Closed: policy.closed, Rules: shown}, Caller: caller, Reads: gatetest.Reads,
			Rights: func(string) (privacy.Rights, error) { return privacy.Rights{BreaksGlass: policy.breaksGlass}, nil },
		}, s.BaseURL)
		if leaking != nil {
			s.Store = leaking(s.Store, t.raw)
		}
		return caller
	})
	DeferCleanup(func() { views.Delete(t.id) })
	return t
}

// fill writes the records of the sweep. Only some sites have the hidden ones.
func (t *twin) fill(kinds []string) {
	GinkgoHelper()
	for i, write := range sweepWrites(kinds) {
		if write.method == "PUT" {
			write.label = t.policy.label(write)
		}
		if i%50 == 0 {
			t.mark()
		}
		if write.hidden && !t.hides || write.method == "PUT" && !slices.Contains(kinds, write.kind) {
			continue
		}
		nextMillisecond()
		body := ""
		if write.method == "PUT" {
			body = write.body()
		}
		a := t.ask(question{method: write.method, path: "/" + write.kind + "/" + write.id, body: body, header: header("X-Caller", chief, headerLoose, "1")})
		Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusCreated), write.kind+"/"+write.id+": "+a.body)
	}
	if t.hides { // a conditional create claims its criteria for a while
		a := t.ask(question{method: "POST", path: "/Patient", body: claimer(t.policy.label(sweepWrite{sweepRecord: sweepRecord{label: labelV}, hidden: true})), header: header("X-Caller", chief, headerLoose, "1", "If-None-Exist", "identifier=urn:only|claimed")})
		Expect(a.status).To(Equal(http.StatusCreated), a.body)
	}
}

// mark notes a time that no record was written at.
func (t *twin) mark() {
	marked := nextMillisecond()
	nextMillisecond()
	t.marks = append(t.marks, time.UnixMilli(marked))
}

// nextMillisecond waits for a millisecond in which nothing was written yet, and returns it. Records
// that were written in one millisecond have no order that two sites would share.
func nextMillisecond() int64 {
	begun := time.Now().UnixMilli()
	for {
		if now := time.Now().UnixMilli(); now > begun {
			return now
		}
		runtime.Gosched()
	}
}

// claimer is a Patient that meets the criteria of a conditional create.
func claimer(label string) string {
	return strings.Replace(sweepRecord{"Patient", "claimed", hiddenWord, "seen-a", label}.body(), `"id":"claimed",`, "", 1)
}

// question is a request that is sent to both sites.
type question struct {
	method, path, body string
	header             http.Header
	// covers names what the question is for, where something must be.
	covers string
	// walks follows the links to further pages.
	walks bool
}

func (q question) String() string {
	return fmt.Sprintf("%s %s %v %.200s", q.method, q.path, q.header, q.body)
}

// header makes a header of names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// ask sends a question to the handler. Without a caller it is nurse's.
func (t *twin) ask(q question) answer {
	r := httptest.NewRequest(q.method, "http://sweep.example/", strings.NewReader(t.marked(q.body)))
	address := t.base + t.marked(q.path)
	if strings.HasPrefix(q.path, "http") {
		address = q.path
	}
	var err error
	if r.URL, err = url.Parse(address); err != nil {
		panic(err)
	}
	r.Host, r.RequestURI = r.URL.Host, ""
	r.Header.Set("X-Caller", nurse)
	if q.body != "" {
		r.Header.Set("Content-Type", "application/fhir+json")
	}
	r.Header.Set("Accept", "application/fhir+json")
	for name, values := range q.header {
		r.Header.Set(name, t.marked(values[0]))
	}
	if t.patience > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), t.patience)
		defer cancel()
		r = r.WithContext(ctx)
	}
	w := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(w, r)
	a := answer{w.Code, w.Header(), w.Body.String()}
	if q.method != "GET" {
		for _, found := range locationPath.FindAllStringSubmatch(a.header.Get("Location")+" "+a.body, -1) {
			t.created = append(t.created, store.Key{Type: found[1], ID: found[2]})
		}
	}
	return a
}

// marked puts times of the site into a text.
func (t *twin) marked(text string) string {
	if !strings.Contains(text, "MARK") {
		return text
	}
	for i, mark := range t.marks {
		text = strings.ReplaceAll(text, fmt.Sprintf("MARK%d", i), mark.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return text
}

// pages is the answer to a question with, if it walks, those to all of its pages.
func (t *twin) pages(q question) string {
	a := t.ask(q)
	text := t.normal(a)
	for page := 0; q.walks && page < 50; page++ {
		next := nextLink.FindStringSubmatch(a.body)
		if next == nil {
			break
		}
		a = t.ask(question{method: "GET", path: strings.ReplaceAll(next[1], `\u0026`, "&"), header: q.header})
		text += "\n" + t.normal(a)
	}
	return text
}

var nextLink = regexp.MustCompile(`"relation":"next","url":"([^"]+)"`)

var (
	assignedID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	locationPath = regexp.MustCompile(`([A-Za-z-]+)/([A-Za-z0-9.-]+)/_history/1\b`)
)

// normal writes an answer without what differs between two sites for good reason: times, ids that
// the server chose, page tokens and the name of the site.
func (t *twin) normal(a answer) string {
	var text strings.Builder
	fmt.Fprintln(&text, a.status)
	for _, name := range []string{
		"Allow", "Content-Type", "ETag", "Last-Modified", "Link", "Location", "Retry-After", "Www-Authenticate", "Content-Location", "Vary", "Cache-Control",
	} {
		fmt.Fprintln(&text, name, a.header.Values(name))
	}
	if a.body == "" && !strings.Contains(a.header.Get("Link"), tokenStart) { // page tokens differ in length
		fmt.Fprintln(&text, a.header.Get("Content-Length"))
	}
	text.WriteString(a.body)
	return normalize(text.String(), t.id) // sweep_normal_test.go
}

// twins are two sites, the first of which also has the hidden records.
type twins struct {
	with, without *twin
	kinds         []string
	// asked are the routes and other things that questions have covered.
	asked map[string]bool
	// telling are those that an answer to the chief tells the sites apart by.
	telling map[string]bool
	// admitted counts the differences that are admitted, by name.
	admitted map[string]int
	// differences are those that are not.
	differences []string
}

func openTwins(ctx context.Context, open func(context.Context, ...func(*fhir.Endpoint)) site, kinds []string, policy policy, leaking leak) *twins {
	GinkgoHelper()
	both := &twins{
		with: openTwin(ctx, open, policy, leaking), without: openTwin(ctx, open, policy, leaking), kinds: kinds,
		asked: map[string]bool{}, telling: map[string]bool{}, admitted: map[string]int{},
	}
	both.with.hides = true
	both.with.fill(kinds)
	both.without.fill(kinds)
	return both
}

// allTypes returns the names of all types.
func allTypes() []string {
	var names []string
	for _, kind := range r4.Types {
		names = append(names, kind.Name)
	}
	return names
}

var facadeRoutes = fhir.RouteTable()

// cover notes the route of a question.
func (b *twins) cover(q question) {
	found := chi.NewRouteContext()
	path, _, _ := strings.Cut(q.path, "?")
	if unescaped, err := url.PathUnescape(path); err == nil && !strings.Contains(path, "%24") {
		path = unescaped
	}
	if facadeRoutes.Match(found, q.method, "/site/x/fhir"+path) {
		b.asked[q.method+" "+strings.TrimSuffix(found.RoutePattern(), "/")] = true
	}
	if q.covers != "" {
		b.asked[q.covers] = true
	}
}

// compare asks both sites, notes a difference, and returns the answer of the site with the hidden
// records, which begins with the status.
func (b *twins) compare(q question) string {
	b.cover(q)
	with, without := b.with.pages(q), b.without.pages(q)
	if q.covers != "" && !b.telling[q.covers] {
		known := q
		known.header = q.header.Clone()
		if known.header == nil {
			known.header = http.Header{}
		}
		known.header.Set("X-Caller", chief)
		b.telling[q.covers] = b.with.pages(known) != b.without.pages(known)
	}
	if with == without {
		return with
	}
	for _, each := range admittedDifferences {
		if each.admits(q, with, without) {
			b.admitted[each.name]++
			return with
		}
	}
	at := 0
	for at < min(len(with), len(without)) && with[at] == without[at] {
		at++
	}
	at = max(0, at-300)
	b.differences = append(b.differences, fmt.Sprintf("%s\n--- with the hidden records, from byte %d:\n%.600s\n--- without:\n%.600s", q, at, with[at:], without[at:]))
	return with
}
