package aggregated

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/paddock-health/paddock/apiserver/store"
)

// maxPage is the maximum number of records that are read from a store at once, and the maximum size
// of a page. A larger limit of the client is reduced to maxPage. A list without a limit has one
// page with all objects.
const maxPage = 500

// NewList implements rest.Lister.
func (r *resource) NewList() runtime.Object { return r.kind.NewList() }

// List implements rest.Lister. The order is ascending by name. The list of a namespace without a
// Site is empty. A list is not a snapshot of the Site, so it has no resourceVersion.
func (r *resource) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	namespace := request.NamespaceValue(ctx)
	if namespace == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"%s are listed by namespace, because each namespace is a site of its own; name one with --namespace", r.kind.Plural))
	}
	if err := r.checkVersion(options); err != nil {
		return nil, err
	}
	query, err := r.query(options)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("list %s: %v", r.kind.Plural, err))
	}
	list := r.kind.NewList()
	site, err := r.site(ctx)
	if errors.Is(err, ErrNoSite) {
		return list, nil
	}
	if err != nil {
		return nil, r.status(ctx, err, "")
	}
	end, err := search(ctx, site)
	if err != nil {
		return nil, r.status(ctx, err, "")
	}
	defer end()
	pages, err := r.pagesOf(ctx, site, options)
	if err != nil {
		return nil, r.status(ctx, err, "")
	}
	if options.Continue != "" {
		if query.After, err = r.pages.Open(pages, options.Continue); err != nil {
			return nil, err
		}
	}
	pager := &pager{resource: r, records: site.Store, query: query, labels: options.LabelSelector, all: options.Limit <= 0}
	objects, next, err := pager.read(ctx)
	if err != nil {
		return nil, r.status(ctx, err, "")
	}
	if next != nil {
		list.SetContinue(r.pages.Seal(pages, next))
	}
	return list, meta.SetList(list, objects)
}

// checkVersion refuses lists of an earlier snapshot, because no snapshots are kept, and the
// combination of resourceVersion and continue.
func (r *resource) checkVersion(options *internalversion.ListOptions) error {
	version, match := options.ResourceVersion, options.ResourceVersionMatch
	switch {
	case version == "" || version == "0":
		return nil
	case options.Continue != "":
		return apierrors.NewBadRequest("resourceVersion cannot be combined with continue; omit resourceVersion")
	case match == metav1.ResourceVersionMatchExact, match == "" && options.Limit > 0: // a limit alone means Exact, as in kube-apiserver
		return apierrors.NewResourceExpired(fmt.Sprintf(
			"earlier states of %s are not kept: list without resourceVersion, or with resourceVersionMatch=NotOlderThan", r.kind.Plural))
	default:
		return nil
	}
}

// query returns the query of a store for the options of a request.
func (r *resource) query(options *internalversion.ListOptions) (store.Query, error) {
	query := store.Query{
		Types: []string{r.kind.Name}, Sort: []store.Sort{{Field: store.SortID}}, Count: maxPage, Total: store.TotalNone,
		// The query may read records of this kind only, because the caller's right to list other
		// kinds was not checked.
		Access: store.Access{r.kind.Name: store.All{}},
	}
	if options.Limit > 0 {
		query.Count = int(min(options.Limit, maxPage))
	}
	if options.ShardSelector != "" {
		return query, fmt.Errorf("shard selector %q: shards are not supported; omit it", options.ShardSelector)
	}
	names, err := selectedNames(options.FieldSelector)
	if err != nil {
		return query, err
	}
	if names != nil {
		query.Where = store.IDIn(names)
	}
	return query, nil
}

// selectedNames returns the names that a field selector selects. A nil result selects all names, an
// empty one none.
func selectedNames(selector fields.Selector) ([]string, error) {
	if selector == nil || selector.Empty() {
		return nil, nil
	}
	var names []string
	for _, requirement := range selector.Requirements() {
		if requirement.Field != metav1.ObjectNameField || requirement.Operator == selection.NotEquals {
			return nil, fmt.Errorf("field selector %q: only %s=<name> is supported", selector, metav1.ObjectNameField)
		}
		name := requirement.Value
		if !isName(name) || names != nil && names[0] != name {
			return []string{}, nil
		}
		names = []string{name}
	}
	return names, nil
}
