package ahds

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// far is how many records a page lies behind the first from which on it is worth a count
// to learn whether the end is nearer.
const far = 100

// list serves GET …/{kind}.
func (h *handler) list(w http.ResponseWriter, r *request, k *kind) error {
	asked, err := list.Read(r.query, k.lists)
	if err != nil {
		return err
	}
	page, err := k.page(r.Context(), r.site.Store, asked)
	if err != nil {
		return err
	}
	items := make([]jsontext.Value, len(page.Records))
	for i, rec := range page.Records {
		if items[i], err = h.render(r, k, rec); err != nil {
			return err
		}
	}
	return r.respond(w, http.StatusOK, typeJSON, asked.Envelope(items, page.Total))
}

// page finds the records of a page, and counts all. A page that is nearer to the end is
// looked for from there: stores walk past what comes before a page.
func (k *kind) page(ctx context.Context, records store.Store, asked list.Request[store.Condition]) (store.Page, error) {
	sort := k.sorts[asked.SortBy]
	sort.Descending = asked.Descending
	where := store.Condition(store.All(asked.Where))
	if k.where != nil {
		where = k.where(asked.Where)
	}
	query := store.Query{
		Types: []string{k.recordType}, Where: where, Sort: []store.Sort{sort},
		Count: asked.PageSize, Skip: asked.Skip(), Total: store.TotalAccurate,
	}
	if query.Skip < far || slices.Contains(k.partial, asked.SortBy) {
		return records.Search(ctx, query)
	}
	counting := query
	counting.Count, counting.Skip = 0, 0
	all, err := records.Search(ctx, counting)
	before, total := int64(query.Skip), all.Total
	if err != nil || before >= total {
		return all, err
	}
	query.Total = store.TotalNone
	after := max(0, total-before-int64(query.Count))
	backwards := after < before
	if backwards {
		query.Sort[0].Descending = !sort.Descending
		query.Skip, query.Count = int(after), int(min(int64(query.Count), total-before))
	}
	page, err := records.Search(ctx, query)
	if backwards {
		slices.Reverse(page.Records)
	}
	page.Total = total
	return page, err
}
