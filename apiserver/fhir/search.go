package fhir

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// defaultMaxIncluded is how many records may be included beside the matches of a page
// where a site does not say.
const defaultMaxIncluded = 1000

// searchByPost serves POST …/{type}/_search and POST …/_search: the form goes with the
// URL's parameters. R4 http.html#search.
func (h *handler) searchByPost(w http.ResponseWriter, r *request) error {
	form, err := r.readForm(w)
	if err != nil {
		return err
	}
	merged := maps.Clone(r.query)
	for name, values := range form {
		merged[name] = slices.Concat(merged[name], values)
	}
	if err := r.setQuery(merged); err != nil {
		return err
	}
	return h.search(w, r)
}

// search serves GET …/{type}, GET at the base for records of several types, and both of
// them in a compartment. R4 http.html#search, http.html#vsearch; contract 2.3.
func (h *handler) search(w http.ResponseWriter, r *request) error {
	query, err := search.Parse(r.query, h.searchOptions(r))
	if err != nil {
		return err
	}
	if r.kind.Name == "" {
		listed, err := r.listed(query.Types)
		if len(listed) == 0 {
			return err
		}
		query.Types = listed
	}
	binding := r.binding(query, r.searchScope(query.Types))
	at, err := h.cursor(query, binding)
	if err != nil {
		return err
	}
	bodies := takeRoom()
	page, err := r.matches(query, at.After, &bodies)
	if err != nil {
		return err
	}
	if r.dialect.patientIncluded && query.Count > 0 {
		if err := r.includePatients(&page, query.Patients); err != nil {
			return err
		}
	}
	links := h.pageLinks(r.searchURL(), query, binding, at, page.Next)
	setLinks(w.Header(), links)
	links = append([]link{{"search", links[1].url}}, links...) // what is searched for is where its pages begin
	found, err := r.searchset(query, page, links)
	if err != nil {
		return err
	}
	keepRoom(bodies)
	return r.respondBundle(w, found)
}

// matches finds the records that a query asks for. The caller may list its types. Room, if
// not nil, is for the bodies.
func (r *request) matches(query search.Query, after store.Position, room *[]byte) (store.Page, error) {
	visible, err := r.visible(query.Types, query.Reaches)
	if err != nil {
		return store.Page{}, err
	}
	return r.site.Store.Search(r.Context(), store.Query{
		Types:       query.Types,
		Where:       query.Where,
		ByType:      query.ByType,
		Access:      visible,
		Bases:       r.bases(),
		Sort:        query.Sort,
		Count:       query.Count,
		After:       after,
		Total:       query.Total,
		Includes:    query.Includes,
		MaxIncluded: r.maxIncluded(),
		Room:        room,
	})
}

// includePatients includes the patients that patient= names, in a page that does not
// have them yet. Contract 4.1.
func (r *request) includePatients(page *store.Page, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	const patient = "Patient"
	visible, err := r.visible(nil, []string{patient})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, rec := range slices.Concat(page.Records, page.Included) {
		if rec.Key.Type == patient {
			there[strings.ToLower(rec.Key.ID)] = true
		}
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return there[id] })
	room := max(0, r.maxIncluded()-len(page.Included))
	if len(ids) == 0 || visible[patient] == nil {
		return nil
	}
	found, err := r.site.Store.Search(r.Context(), store.Query{
		Types: []string{patient}, Where: store.IDIn(ids), Access: visible, Count: room, Total: store.TotalNone,
		Sort: []store.Sort{{Field: store.SortID}},
	})
	page.Included = append(page.Included, found.Records...)
	page.IncludedCut = page.IncludedCut || found.Next != nil || room == 0
	return err
}

// bases are the addresses of the site: what refers there refers to its records.
func (r *request) bases() []string { return append([]string{r.site.BaseURL}, r.site.OtherURLs...) }

func (r *request) maxIncluded() int { return cmp.Or(r.site.MaxIncluded, defaultMaxIncluded) }

// searchURL is the address of the type that is searched, of the compartment or of the site.
func (r *request) searchURL() string {
	switch {
	case r.compartment != nil:
		return r.pagesURL() + "/" + r.compartment.path
	case r.segment == "":
		return r.pagesURL()
	default:
		return r.typeURL()
	}
}

// searchScope is what the page tokens of a search belong to.
func (r *request) searchScope(types []string) string {
	scope := strings.Join(types, ",")
	if r.compartment != nil {
		scope = r.compartment.Type + "/" + strings.ToLower(r.compartment.ID) + "/" + scope
	}
	return scope
}
