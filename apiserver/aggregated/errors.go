package aggregated

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/store"
)

// retryAfter is when to ask again, in seconds, while the storage of a site is
// away. It is short: kubectl asks ten times before it tells its user.
const retryAfter = 1

// writeStatus is status for a write, of which nobody knows what became when the storage
// does not answer: who is not told to come back does not repeat it unasked.
func (r *resource) writeStatus(ctx context.Context, err error, name string) error {
	var claim *store.ClaimError
	var limit *store.LimitError
	var dangling *integrity.DanglingError
	var referenced *integrity.ReferencedError
	switch {
	case errors.As(err, &dangling):
		return apierrors.NewInvalid(r4v1.GroupVersion.WithKind(r.kind.Name).GroupKind(), name, danglingErrors(dangling))
	case errors.As(err, &referenced), errors.As(err, &claim):
		return apierrors.NewConflict(r.groupResource(), name, err)
	case errors.As(err, &limit) && limit.Scope == store.LimitRecord:
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.As(err, &limit):
		return r.full(err, name)
	case errors.Is(err, store.ErrUnavailable):
		slog.WarnContext(ctx, "a record was not written, or nobody knows", "namespace", request.NamespaceValue(ctx), "resource", r.kind.Plural, "error", err)
		answer := r.unavailable("the storage of namespace "+request.NamespaceValue(ctx)+" did not answer; the write may have happened all the same", name)
		answer.ErrStatus.Details.RetryAfterSeconds = 0
		return answer
	default:
		return r.status(ctx, err, name)
	}
}

// full answers who would store more than there is room for.
func (r *resource) full(err error, name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage", Message: err.Error(),
		Details: &metav1.StatusDetails{Group: r.groupResource().Group, Kind: r.kind.Plural, Name: name},
	}}
}

// status turns an error of a store into one that the API machinery answers with.
// Name is empty for a list.
func (r *resource) status(ctx context.Context, err error, name string) error {
	var deleted *store.DeletedError
	switch {
	case errors.Is(err, ErrNoSite), errors.Is(err, store.ErrNotFound), errors.As(err, &deleted):
		return apierrors.NewNotFound(r.groupResource(), name)
	case errors.Is(err, store.ErrBadPosition):
		return apierrors.NewBadRequest("continue: this is not where a page of this list ended; list from the start")
	case errors.Is(err, store.ErrNotReady), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrQueryTimeout), errors.Is(err, access.ErrUnavailable):
		namespace := request.NamespaceValue(ctx)
		slog.WarnContext(ctx, "the records of a site are not available", "namespace", namespace, "resource", r.kind.Plural, "error", err)
		return r.unavailable("the records of namespace "+namespace+" are not available right now", name)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request ended before it was answered", 0)
	default:
		return err
	}
}

func (r *resource) unavailable(message, name string) *apierrors.StatusError {
	answer := apierrors.NewServiceUnavailable(message)
	answer.ErrStatus.Details = &metav1.StatusDetails{
		Group: r.groupResource().Group, Kind: r.kind.Plural, Name: name, RetryAfterSeconds: retryAfter,
	}
	return answer
}
