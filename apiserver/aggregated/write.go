package aggregated

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/store"
)

// mostAttempts bounds how often a write that met others is tried again.
const mostAttempts = 20

// writing is one write of a caller to a site.
type writing struct {
	*resource
	site   Site
	caller access.Caller
	dryRun bool
	method store.Method
}

// begin finds where a write goes and whose it is.
func (r *resource) begin(ctx context.Context, dryRun []string) (*writing, error) {
	site, err := r.site(ctx)
	if err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	w := &writing{resource: r, site: site, caller: caller, dryRun: dryrun.IsDryRun(dryRun), method: store.MethodPut}
	// History tells a patch from an update, in FHIR's dialect.
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "patch" {
		w.method = store.MethodPatch
	}
	return w, nil
}

// Create writes an object that must be new.
func (r *resource) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	w, err := r.begin(ctx, options.DryRun)
	if errors.Is(err, ErrNoSite) {
		return nil, noSite(request.NamespaceValue(ctx), r.kind.Plural)
	}
	if err != nil {
		return nil, r.status(ctx, err, "")
	}
	sent := object.(r4v1.Object)
	generated := sent.GetName() == "" && sent.GetGenerateName() != ""
	for attempt := 1; ; attempt++ {
		if generated {
			sent.SetName(names.SimpleNameGenerator.GenerateName(sent.GetGenerateName()))
		}
		created, err := w.create(ctx, sent, validate)
		if apierrors.IsAlreadyExists(err) && generated && attempt < mostAttempts {
			continue
		}
		return created, err
	}
}

// noSite answers who would create something where nothing can be kept.
func noSite(namespace, plural string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("there is no Site in namespace %q that could keep %s", namespace, plural),
		Details: &metav1.StatusDetails{Group: "paddock.health", Kind: "sites"},
	}}
}

// create writes it under its name.
func (w *writing) create(ctx context.Context, sent r4v1.Object, validate rest.ValidateObjectFunc) (runtime.Object, error) {
	rest.FillObjectMetaSystemFields(sent)
	checked := &strategy{ObjectTyper: w.scheme, NameGenerator: names.SimpleNameGenerator, kind: w.kind, named: w.site.UpdateCreate}
	if err := rest.BeforeCreate(checked, ctx, sent); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, sent.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	op, err := w.put(sent, checked)
	if err != nil {
		return nil, w.status(ctx, err, sent.GetName())
	}
	op.Method, op.If = store.MethodPost, store.Precondition{Absent: true}
	record, err := w.write(ctx, op)
	if conflict := new(store.PreconditionError); errors.As(err, &conflict) {
		return nil, apierrors.NewAlreadyExists(w.groupResource(), sent.GetName())
	}
	if err != nil {
		return nil, w.writeStatus(ctx, err, sent.GetName())
	}
	if w.dryRun {
		return sent, nil
	}
	return w.object(ctx, w.site.Store, record)
}

// put is the operation that stores an object.
func (w *writing) put(sent r4v1.Object, checked *strategy) (store.Op, error) {
	if int64(len(checked.body.JSON)) > w.site.MaxBodySize {
		return store.Op{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the resource has %d bytes, the site takes %d at most", len(checked.body.JSON), w.site.MaxBodySize))
	}
	metadata, err := toKeep(sent)
	return store.Op{
		Kind: store.Put, Key: store.Key{Type: w.kind.Name, ID: sent.GetName()}, Method: w.method, Body: checked.body, Metadata: metadata,
	}, err
}

// write carries out an operation, or finds out what would become of it.
func (w *writing) write(ctx context.Context, op store.Op) (store.Record, error) {
	writer := integrity.Writer{
		Store: w.site.Store, Authorizer: w.authorizer, Caller: w.caller, Site: w.site.Access, Bases: w.site.Bases,
	}
	if w.dryRun {
		return w.rehearse(ctx, writer, op)
	}
	write := w.site.Store.Write
	if w.site.EnforceReferences {
		write = writer.Write
	}
	results, err := write(ctx, []store.Op{op})
	if err != nil {
		return store.Record{}, err
	}
	return results[0].Record, nil
}

// rehearse checks an operation as far as reading does. It returns what is stored.
func (w *writing) rehearse(ctx context.Context, writer integrity.Writer, op store.Op) (store.Record, error) {
	var current *store.Record
	stored, err := w.site.Store.Get(ctx, op.Key)
	switch {
	case err == nil:
		current = &stored
	case !isAbsent(err):
		return store.Record{}, err
	}
	if err := op.If.Check(op.Key, current); err != nil {
		return store.Record{}, err
	}
	if w.site.EnforceReferences && op.Kind == store.Put {
		err = writer.Check(ctx, op)
	} else {
		err = nil
	}
	return stored, err
}

func isAbsent(err error) bool {
	var deleted *store.DeletedError
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &deleted)
}

// isStale reports whether a write met another one.
func isStale(err error) bool {
	var conflict *store.PreconditionError
	return errors.As(err, &conflict)
}
