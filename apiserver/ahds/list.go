package ahds

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// countThreshold is the number of records before a page at which page first counts all matches. The
// count shows whether the page is nearer to the end of the list than to the start.
const countThreshold = 100

// list serves GET …/{kind}.
func (h *handler) list(w http.ResponseWriter, r *request, k *kind) error {
	asked, err := list.Parse(r.query, k.lists)
	if err != nil {
		return err
	}
	r.auditParameters()
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

// page returns the records of a page and the total count. A page that is nearer to the end of the
// list than to the start is searched in reverse order, because stores scan all records before a
// page. This does not apply to the first countThreshold records, nor to sort fields that some
// records lack.
func (k *kind) page(ctx context.Context, records store.Store, asked list.Request[store.Condition]) (store.Page, error) {
	sort := k.sorts[asked.SortBy]
	sort.Descending = asked.Descending
	where := store.Condition(store.All(asked.Where))
	if k.where != nil {
		where = k.where(asked.Where)
	}
	query := store.Query{
		Types: []string{k.recordType}, Access: store.Access{k.recordType: store.All{}}, Where: where, Sort: []store.Sort{sort},
		Count: asked.PageSize, Skip: asked.Skip(), Total: store.TotalAccurate,
	}
	if query.Skip < countThreshold || slices.Contains(k.partial, asked.SortBy) {
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
