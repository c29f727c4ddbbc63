package randomsearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// answer is a page as it came over HTTP.
type answer struct {
	matches, included []string
	outcome           bool
	total             *int
	next              string
}

// read asks for a page.
func (s *site) read(method, path, body string, headers map[string]string) (answer, error) {
	w := s.do(method, path, body, headers)
	var bundle struct {
		Total *int
		Link  []struct{ Relation, URL string }
		Entry []struct {
			FullURL  string
			Resource struct{ ResourceType, ID string }
			Search   struct{ Mode string }
		}
	}
	if w.Code != http.StatusOK {
		return answer{}, fmt.Errorf("%d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &bundle); err != nil {
		return answer{}, err
	}
	a := answer{total: bundle.Total}
	for _, link := range bundle.Link {
		if link.Relation == "next" {
			a.next = link.URL
		}
	}
	for _, entry := range bundle.Entry {
		name := entry.Resource.ResourceType + "/" + strings.ToLower(entry.Resource.ID)
		switch entry.Search.Mode {
		case "match":
			a.matches = append(a.matches, name)
		case "include":
			a.included = append(a.included, name)
		case "outcome":
			a.outcome = true
		default:
			return a, fmt.Errorf("%s has the mode %q", entry.FullURL, entry.Search.Mode)
		}
	}
	return a, nil
}

// compare compares a page with what must be on it: some of all matches, from first on.
func (a answer) compare(w *World, q Query, want []*Record, first, all int, more bool, capped int) error {
	var names []string
	for _, r := range want {
		names = append(names, r.String())
	}
	if !slices.Equal(a.matches, names) {
		return fmt.Errorf("the matches are\n%q, want\n%q", a.matches, names)
	}
	if more != (a.next != "") {
		return fmt.Errorf("that there is a next page is %v, but the next link is %q", more, a.next)
	}
	return errors.Join(a.compareTotal(q, first, all, more), a.compareIncluded(w, q, want, capped))
}

// free is how many matches are counted for a total that nobody insisted on.
const free = 1000

// compareTotal compares the total, which the first page has where it is not too large to
// be free; those that follow may have it.
func (a answer) compareTotal(q Query, first, all int, more bool) error {
	isFree := all <= free || first == 0 && !more
	switch {
	case a.total != nil && *a.total != all:
		return fmt.Errorf("the total is %d, want %d", *a.total, all)
	case a.total == nil && q.Total != "none" && (q.Total == "accurate" || q.Count == 0 || first == 0 && isFree):
		return errors.New("there is no total")
	case a.total != nil && q.Count > 0 && (q.Total == "none" || q.Total != "accurate" && !isFree):
		return errors.New("there is a total")
	}
	return nil
}

func (a answer) compareIncluded(w *World, q Query, matches []*Record, capped int) error {
	want := map[string]bool{}
	for r := range w.Included(matches, q.Includes) {
		want[r.String()] = true
	}
	count := len(want)
	if capped > 0 && capped < count {
		count = capped
	}
	if cut := count < len(want); cut != a.outcome {
		return fmt.Errorf("that something is left out is %v, and that the answer says so is %v", cut, a.outcome)
	}
	seen := map[string]bool{}
	for _, name := range a.included {
		if !want[name] || seen[name] {
			return fmt.Errorf("included is %s, which must not be or is twice", name)
		}
		seen[name] = true
	}
	if len(seen) != count {
		return fmt.Errorf("included are %d, want %d of %v, got %v", len(seen), count, want, a.included)
	}
	return nil
}
