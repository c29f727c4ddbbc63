package aggregated

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// resource serves one kind from the stores. The interfaces that it implements determine the verbs
// of discovery. It must not implement rest.Watcher or rest.CollectionDeleter. Otherwise the garbage
// collector and the quota controller of a cluster would list all patients
// (docs/decisions/0004-aggregated-api.md).
type resource struct {
	kind       r4v1.Kind
	sites      Sites
	authorizer access.Authorizer
	pages      Pages
	scheme     *runtime.Scheme
	table      table
	// fields computes the owners of fields.
	fields *managedfields.FieldManager
}

var (
	_ rest.Storage              = (*resource)(nil)
	_ rest.Scoper               = (*resource)(nil)
	_ rest.SingularNameProvider = (*resource)(nil)
	_ rest.ShortNamesProvider   = (*resource)(nil)
	_ rest.CategoriesProvider   = (*resource)(nil)
	_ rest.Getter               = (*resource)(nil)
	_ rest.Lister               = (*resource)(nil)
	_ rest.Creater              = (*resource)(nil) //nolint:misspell // the library's spelling
	_ rest.Updater              = (*resource)(nil)
	_ rest.Patcher              = (*resource)(nil)
	_ rest.GracefulDeleter      = (*resource)(nil)
)

// New implements rest.Storage.
func (r *resource) New() runtime.Object { return r.kind.New() }

// Destroy implements rest.Storage. It does not close the stores, which belong to package sites.
func (r *resource) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *resource) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *resource) GetSingularName() string { return r.kind.Singular }

// ShortNames implements rest.ShortNamesProvider.
func (r *resource) ShortNames() []string { return r.kind.ShortNames }

// Categories implements rest.CategoriesProvider.
func (r *resource) Categories() []string { return []string{r4v1.Category} }

func (r *resource) groupResource() schema.GroupResource {
	return r4v1.GroupVersion.WithResource(r.kind.Plural).GroupResource()
}

// Get implements rest.Getter. It returns the newest version, which satisfies any requested
// resourceVersion.
func (r *resource) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if !isName(name) {
		return nil, apierrors.NewNotFound(r.groupResource(), name)
	}
	site, err := r.site(ctx)
	if err != nil {
		return nil, r.status(ctx, err, name)
	}
	record, err := site.Store.Get(ctx, store.Key{Type: r.kind.Name, ID: name})
	if err != nil {
		return nil, r.status(ctx, err, name)
	}
	object, err := r.object(ctx, site.Store, record)
	if err != nil {
		return nil, r.status(ctx, err, name)
	}
	return object, nil
}

// isName reports whether name has no upper-case letters. The object of a record has the id in lower
// case as its name, because ids that differ only in case belong to the same record.
func isName(name string) bool { return name == strings.ToLower(name) }

// object returns the object of a record. If another API has written the record since the managed
// fields were stored, it reads the version of that time from records, to update the managed fields.
func (r *resource) object(ctx context.Context, records store.Store, record store.Record) (r4v1.Object, error) {
	object := r.kind.New()
	if err := fill(ctx, object, request.NamespaceValue(ctx), record); err != nil {
		return nil, fmt.Errorf("convert %s/%s to an object: %w", record.Key.Type, record.Key.ID, err)
	}
	if len(object.GetManagedFields()) == 0 || record.MetadataVersion == record.Version {
		return object, nil
	}
	return r.attribute(ctx, records, object, record)
}
