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

// maxAttempts is how often one write is tried while concurrent writes conflict with it. At the
// limit the write fails with a conflict. It also limits how often a create with generateName tries
// another name; at the limit the create fails with AlreadyExists.
const maxAttempts = 20

// mutation is one create, update or delete of a caller at a Site.
type mutation struct {
	*resource
	site     Backend
	caller   access.Caller
	isDryRun bool
	method   store.Method
}

// begin returns the mutation of a request, with its Site and caller, and counts the request against
// the limits of the Site.
func (r *resource) begin(ctx context.Context, dryRun []string) (*mutation, error) {
	site, err := r.site(ctx)
	if err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	w := &mutation{resource: r, site: site, caller: caller, isDryRun: dryrun.IsDryRun(dryRun), method: store.MethodPut}
	// The history of a record distinguishes patches from updates.
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "patch" {
		w.method = store.MethodPatch
	}
	return w, nil
}

// Create implements rest.StandardStorage.
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
		created, err := w.create(ctx, sent, generated, validate)
		taken := new(store.IDTakenError)
		if isTaken := errors.As(err, &taken); isTaken || apierrors.IsAlreadyExists(err) {
			if generated && attempt < maxAttempts {
				continue
			}
			if isTaken {
				err = r.writeStatus(ctx, err, sent.GetName())
			}
		}
		return created, err
	}
}

// noSite returns the error of a creation in a namespace without a Site.
func noSite(namespace, plural string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("there is no Site in namespace %q to store %s; create a Site there, or name another namespace", namespace, plural),
		Details: &metav1.StatusDetails{Group: "paddock.health", Kind: "sites"},
	}}
}

// create validates and writes a new object. generated reports whether the server generated the name
// of the object. Errors: *store.IDTakenError, and those of the API machinery.
func (w *mutation) create(ctx context.Context, sent r4v1.Object, generated bool, validate rest.ValidateObjectFunc) (runtime.Object, error) {
	rest.FillObjectMetaSystemFields(sent)
	checked := &strategy{ObjectTyper: w.scheme, NameGenerator: names.SimpleNameGenerator, kind: w.kind, bases: w.site.Bases, named: w.site.UpdateCreate || generated}
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
	if taken := new(store.IDTakenError); errors.As(err, &taken) {
		return nil, err
	}
	if err != nil {
		return nil, w.writeStatus(ctx, err, sent.GetName())
	}
	if w.isDryRun {
		return sent, nil
	}
	return w.object(ctx, w.site.Store, record)
}

// put returns the operation that stores an object.
func (w *mutation) put(sent r4v1.Object, checked *strategy) (store.Op, error) {
	if int64(len(checked.body.JSON)) > w.site.MaxBodySize() {
		return store.Op{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the resource has %d bytes; this site allows at most %d (spec.limits.maxBodySize)", len(checked.body.JSON), w.site.MaxBodySize()))
	}
	metadata, err := toKeep(sent)
	if len(metadata) > maxMetadata {
		return store.Op{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the labels, annotations and managed fields have %d bytes; at most %d are allowed: remove some, or apply with fewer field managers", len(metadata), maxMetadata))
	}
	return store.Op{
		Kind: store.Put, Key: store.Key{Type: w.kind.Name, ID: sent.GetName()}, Method: w.method, Body: checked.body, Metadata: metadata,
	}, err
}

// write executes an operation, or simulates it in a dry run.
func (w *mutation) write(ctx context.Context, op store.Op) (store.Record, error) {
	writer := integrity.Writer{
		Store: w.site.Store, Authorizer: w.authorizer, Caller: w.caller, Site: w.site.Access, Bases: w.site.Bases,
	}
	if w.isDryRun {
		return w.dryRun(ctx, writer, op)
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

// dryRun checks an operation without writing. It returns the stored record, if any.
func (w *mutation) dryRun(ctx context.Context, writer integrity.Writer, op store.Op) (store.Record, error) {
	var current *store.Record
	stored, err := w.site.Store.Get(ctx, op.Key)
	switch {
	case err == nil:
		current = &stored
	case !store.IsAbsent(err):
		return store.Record{}, err
	}
	if err := w.site.Store.CheckWrite(op, current); err != nil {
		return store.Record{}, err
	}
	if err := op.If.Check(op.Key, current); err != nil {
		return store.Record{}, err
	}
	if current == nil && op.Kind == store.Put {
		switch hidden, err := w.site.Store.Hidden(ctx, []store.Key{op.Key}); {
		case err != nil:
			return store.Record{}, err
		case len(hidden) > 0:
			return store.Record{}, &store.IDTakenError{Key: op.Key}
		}
	}
	if w.site.EnforceReferences && op.Kind == store.Put {
		err = writer.Check(ctx, op)
	} else {
		err = nil
	}
	return stored, err
}
