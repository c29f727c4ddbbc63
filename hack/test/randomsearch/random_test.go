package randomsearch

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

var (
	queries = flag.Int("queries", 3000, "how many random queries to ask")
	seed    = flag.Uint64("seed", 1, "what the data and the queries are made from")
	records = flag.Int("records", 30, "how many records of each type there are, about")
	most    = flag.Int("most", 5, "how many wrong answers to show before giving up")
)

// round is how many queries are asked between changes of the data.
const round = 1500

// TestRandomQueries asks a site random queries, page by page, and compares the answers
// with those of the plain engine of this package.
func TestRandomQueries(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { askRandomly(t, newSite(t, *seed, open(t))) })
	}
}

func askRandomly(t *testing.T, s *site) {
	s.fill(*records)
	s.change(*records * 7)
	sounds := s.sounds()
	figures := &figures{forms: map[string]int{}}
	for asked := 0; asked < *queries; asked += round {
		world := s.world()
		var workers sync.WaitGroup
		for n := range uint64(2) {
			workers.Go(func() {
				g := newGenerator(*seed<<32+uint64(asked)*2+n, world, sounds, now)
				for range min(round, *queries-asked) / 2 {
					if figures.wrong() >= *most {
						return
					}
					s.ask(g, world, figures)
				}
			})
		}
		workers.Wait()
		s.change(60)
	}
	t.Logf("%+v", figures.counts)
	t.Logf("%v", figures.forms)
	for _, form := range forms {
		if least := *queries / 3000; figures.forms[form] < least {
			t.Errorf("there are %d filters of the form %s, want %d", figures.forms[form], form, least)
		}
	}
	if wrong := figures.wrong(); wrong > 0 {
		t.Errorf("%d wrong answers", wrong)
	}
	if figures.counts.matches < *queries/2 || figures.counts.included < *queries/10 {
		t.Errorf("the queries say too little: %+v", figures.counts)
	}
}

// figures counts what was compared, and the forms of filters by kind and modifier.
type figures struct {
	sync.Mutex
	forms  map[string]int
	counts struct{ queries, empty, pages, matches, included, filters, limited, refused, wrong int }
}

func (f *figures) wrong() int {
	f.Lock()
	defer f.Unlock()
	return f.counts.wrong
}

// forms are those of filters, that must all be among the queries.
var forms = strings.Fields(`token token:not token:text token:of-type token:in token:not-in token:missing string string:contains string:exact
	string:missing date date:missing uri uri:above uri:below uri:missing canonical canonical:above canonical:below reference reference:type reference:identifier reference:above reference:below
	reference:missing composite special special:missing _id _id:not _id:missing _lastUpdated _lastUpdated:missing chain chain:type _has _has:in-value compartment
	range range:sorted`)

// formOf is the form of a filter by its name.
func formOf(w *World, types []string, name string) string {
	first, rest, modified := strings.Cut(strings.SplitN(name, ".", 2)[0], ":")
	kind := w.parameters[types[0]][first].Kind
	switch {
	case name == compartmentForm:
		return name
	case name == "_has":
		return "_has:in-value"
	case first == "_has":
		return first
	case strings.Contains(name, "."):
		kind = "chain"
	case first == "_id" || first == "_lastUpdated":
		kind = first
	case first == "telecom":
		kind = "token"
	case first == "patient":
		kind = "reference"
	case w.parameters[types[0]][first].Canonical && rest != "missing":
		kind = "canonical"
	}
	switch {
	case !modified:
		return kind
	case w.parameters[rest] != nil:
		return kind + ":type"
	}
	return kind + ":" + rest
}

// ask asks a query and compares all of its pages.
func (s *site) ask(g *generator, whole *World, f *figures) {
	seen, headers := searchtruth.Kept, map[string]string{}
	world := whole
	if g.chance(20) {
		seen = slices.Clone(seen)
		g.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		seen = seen[:1+g.IntN(len(seen))]
		headers[callerHeader] = strings.Join(seen, ",")
	}
	hidden := ""
	if g.chance(20) {
		hidden = searchtruth.Lower(pick(g.Rand, codes))
		headers[hiddenHeader] = hidden
	}
	if len(headers) > 0 {
		world = whole.see(seen, hidden)
	}
	capped := 0
	if g.chance(20) {
		capped = 1 + g.IntN(8)
		headers[includedHeader] = strconv.Itoa(capped)
	}
	q := g.query(seen)
	want := world.Matches(q.Types, q.Filters, q.Sort)
	pages, included, err := s.walk(g, world, q, want, headers, capped)
	f.Lock()
	defer f.Unlock()
	f.counts.queries++
	f.counts.filters += len(q.Filters)
	if pages == 0 && err == nil {
		f.counts.refused++
	}
	for _, filter := range q.Filters {
		f.forms[formOf(world, q.Types, filter.Name)]++
	}
	if q.Range != "" {
		f.forms["range"]++
		if len(q.Sort) > 0 && q.Sort[0].Name == q.Range {
			f.forms["range:sorted"]++
		}
	}
	f.counts.matches += len(want)
	f.counts.pages += pages
	f.counts.included += included
	if len(want) == 0 {
		f.counts.empty++
	}
	if world != whole {
		f.counts.limited++
	}
	if err != nil && f.counts.wrong < *most {
		f.counts.wrong++
		s.t.Errorf("%s %v ?%s with %v:\n%v", q.Within, q.Types, q.Written.Encode(), headers, err)
	}
}

// walk goes through all pages.
func (s *site) walk(g *generator, w *World, q Query, want []*Record, headers map[string]string, capped int) (pages, included int, err error) {
	method, path, body := http.MethodGet, "/site/s/fhir", ""
	switch {
	case q.Within != "":
		path += "/" + q.Within
	case !q.Everywhere && q.Written.Get("_type") == "":
		path += "/" + q.Types[0]
	}
	if g.chance(10) {
		method, path, body = http.MethodPost, path+"/_search", q.Written.Encode()
		headers["Content-Type"] = "application/x-www-form-urlencoded"
	} else {
		path += "?" + q.Written.Encode()
	}
	if q.Refused(w) {
		if answer := s.do(method, path, body, headers); answer.Code != http.StatusBadRequest {
			return 0, 0, fmt.Errorf("ambiguous, but answered with %d: %s", answer.Code, answer.Body)
		}
		return 0, 0, nil
	}
	for first := 0; ; first += q.Count {
		answer, err := s.read(method, path, body, headers)
		if err != nil {
			return pages, included, err
		}
		pages++
		last := min(len(want), first+q.Count)
		more := last < len(want) && q.Count > 0
		follow(want[first:], answer.matches, q.Sort)
		if err := answer.compare(w, q, want[first:last], first, len(want), more, capped); err != nil {
			return pages, included, fmt.Errorf("page %d: %w", pages, err)
		}
		included += len(answer.included)
		if !more {
			return pages, included, nil
		}
		next, ok := strings.CutPrefix(answer.next, "https://paddock.example")
		if !ok {
			return pages, included, fmt.Errorf("page %d: the next one is at %q", pages, answer.next)
		}
		method, path, body = http.MethodGet, next, ""
	}
}
