package fhir

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

// defaultMaxIncluded is the maximum number of included records of a page at a Site that does not
// set limits.maxIncluded. Further records are omitted, and the Bundle has a warning.
const defaultMaxIncluded = 1000

// searchByPost serves POST …/_search at the base, at a type and at a compartment. The parameters of
// the form are added to those of the URL. R4 http.html#search.
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

// search serves GET …/{type}, GET at the base for several types, and searches of a compartment. R4
// http.html#search, http.html#vsearch; contract 2.3.
func (h *handler) search(w http.ResponseWriter, r *request) error {
	query, err := search.Parse(r.query, h.searchOptions(r))
	if err != nil {
		return err
	}
	r.recordParameters(query.Ignored)
	if r.kind.Name == "" {
		listed, err := r.listableTypes(query.Types)
		if len(listed) == 0 {
			return err
		}
		query.Types = listed
	}
	binding := r.binding(query, r.searchScope(query.Types), slices.Concat(query.Types, query.ReachedTypes))
	at, err := h.cursor(query, binding)
	if err != nil {
		return err
	}
	maxLag := r.maxLag()
	page, err := r.searchRecords(query, at.After, maxLag)
	if err != nil {
		return err
	}
	if r.dialect.patientIncluded && query.Count > 0 {
		if err := r.includePatients(&page, query.Patients, maxLag); err != nil {
			return err
		}
	}
	links, err := h.pageLinks(r.searchURL(), query, binding, at, page.Next)
	if err != nil {
		return err
	}
	setLinks(w.Header(), links)
	setAge(w.Header(), page.Lag)
	links = append([]link{{"search", links[1].url}}, links...) // the same as first
	found, err := r.searchset(query, page, links)
	if err != nil {
		return err
	}
	return r.respondBundle(w, found)
}

// searchOptions returns the options for parsing the parameters of a request.
func (h *handler) searchOptions(r *request) search.Options {
	lenient := r.site.Lenient
	if handling := parsePreferences(r.Header).handling; handling != "" {
		lenient = handling == handlingLenient
	}
	options := search.Options{
		Type:       r.kind.Name,
		SortByDate: r.dialect.sortByDate,
		Lenient:    lenient,
		Now:        h.Now(),
		Zone:       r.site.Zone,
		Bases:      r.bases(),
		MaxCount:   settings.Int(r.site.Limits.MaxPageSize, search.MaxCount),
	}
	if r.compartment != nil {
		options.Compartment = &r.compartment.Compartment
	}
	return options
}

// searchRecords returns a page of the records that match a query. The caller must be allowed to
// list its types. maxLag is the lag that the response may have (store.Query).
func (r *request) searchRecords(query search.Query, after store.Position, maxLag time.Duration) (store.Page, error) {
	filter, err := r.accessFilter(query.Types, query.ReachedTypes)
	if err != nil {
		return store.Page{}, err
	}
	return r.site.Store.Search(r.Context(), store.Query{
		Types:       query.Types,
		Where:       query.Where,
		ByType:      query.ByType,
		Access:      filter,
		Bases:       r.bases(),
		Sort:        query.Sort,
		Count:       query.Count,
		After:       after,
		Total:       query.Total,
		Includes:    query.Includes,
		MaxIncluded: r.maxIncluded(),
		MaxLag:      maxLag,
	})
}

// includePatients adds the patients with the ids, which are values of the parameter patient, to the
// included records of a page, up to the limit of included records. It omits those that the page
// already has, and all if the caller may not list Patients. Contract 4.1.
func (r *request) includePatients(page *store.Page, ids []string, maxLag time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	filter, err := r.accessFilter(nil, []string{patientType})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, rec := range slices.Concat(page.Records, page.Included) {
		if rec.Key.Type == patientType {
			there[strings.ToLower(rec.Key.ID)] = true
		}
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return there[id] })
	room := max(0, r.maxIncluded()-len(page.Included))
	if len(ids) == 0 || filter[patientType] == nil {
		return nil
	}
	found, err := r.site.Store.Search(r.Context(), store.Query{
		Types: []string{patientType}, Where: store.IDIn(ids), Access: filter, Count: room, Total: store.TotalNone,
		Sort: []store.Sort{{Field: store.SortID}}, MaxLag: maxLag,
	})
	page.Lag = max(page.Lag, found.Lag)
	page.Included = append(page.Included, found.Records...)
	page.IncludedCut = page.IncludedCut || found.Next != nil || room == 0
	return err
}

func (r *request) bases() []string { return append([]string{r.site.BaseURL}, r.site.OtherURLs...) }

func (r *request) maxIncluded() int {
	return settings.Int(r.site.Limits.MaxIncluded, defaultMaxIncluded)
}

// searchURL returns the address of the type, compartment or site that is searched.
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

// searchScope returns the scope to which the page tokens of a search are bound.
func (r *request) searchScope(types []string) string {
	scope := strings.Join(types, ",")
	if r.compartment != nil {
		scope = r.compartment.Type + "/" + strings.ToLower(r.compartment.ID) + "/" + scope
	}
	return scope
}
