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
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/store"
)

// retryAfter is the Retry-After of temporary failures in seconds, such as an unavailable storage.
// It is short, because kubectl retries ten times before it reports an error.
const retryAfter = 1

// writeStatus is like status, for a write. If the storage does not respond, the write may have
// succeeded. The error then has no Retry-After, so that clients do not repeat the write.
func (r *resource) writeStatus(ctx context.Context, err error, name string) error {
	var claim *store.ClaimError
	var limit *store.LimitError
	var dangling *integrity.DanglingError
	var referenced *integrity.ReferencedError
	var taken *store.IDTakenError
	switch {
	case errors.As(err, &taken):
		return apierrors.NewAlreadyExists(r.groupResource(), name)
	case errors.As(err, &dangling):
		return apierrors.NewInvalid(r4v1.GroupVersion.WithKind(r.kind.Name).GroupKind(), name, danglingErrors(dangling))
	case errors.As(err, &referenced), errors.As(err, &claim):
		return apierrors.NewConflict(r.groupResource(), name, err)
	case errors.As(err, &limit) && limit.IsBacklog():
		return apierrors.NewTooManyRequests(err.Error(), retryAfter)
	case errors.As(err, &limit) && limit.Scope == store.LimitRecord:
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.As(err, &limit):
		return r.statusError(http.StatusInsufficientStorage, "InsufficientStorage", err, name)
	case errors.Is(err, store.ErrUnavailable):
		slog.WarnContext(ctx, "a write failed or has an unknown outcome", "namespace", request.NamespaceValue(ctx), "resource", r.kind.Plural, "name", name, "error", err)
		answer := r.unavailable("the storage of namespace "+request.NamespaceValue(ctx)+" did not confirm the write, which may have succeeded; read the object before you repeat the write", name)
		answer.ErrStatus.Details.RetryAfterSeconds = 0
		return answer
	default:
		return r.status(ctx, err, name)
	}
}

// statusError returns an error with a reason that package apierrors does not have.
func (r *resource) statusError(code int32, reason metav1.StatusReason, err error, name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: err.Error(),
		Details: &metav1.StatusDetails{Group: r.groupResource().Group, Kind: r.kind.Plural, Name: name},
	}}
}

// status returns the error of the API machinery for an error of a store. name is empty for a list.
func (r *resource) status(ctx context.Context, err error, name string) error {
	var tooMany *store.TooManyConditionsError
	var forbidden *access.ForbiddenError
	var exceeded *limits.ExceededError
	switch {
	case errors.As(err, &exceeded):
		return apierrors.NewTooManyRequests(exceeded.Error(), exceeded.RetrySeconds())
	case errors.Is(err, ErrNoSite), store.IsAbsent(err):
		return apierrors.NewNotFound(r.groupResource(), name)
	case errors.As(err, &forbidden):
		return apierrors.NewForbidden(r.groupResource(), name, err)
	case errors.As(err, &tooMany):
		return r.statusError(http.StatusBadRequest, "TooManyConditions", tooMany, name)
	case errors.Is(err, store.ErrBadPosition):
		return apierrors.NewBadRequest("continue: the token cannot be used any more, for example because the site was moved to another storage; omit it to list from the start")
	case errors.Is(err, store.ErrNotReady), errors.Is(err, store.ErrMoving), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrQueryTimeout), errors.Is(err, access.ErrUnavailable):
		namespace := request.NamespaceValue(ctx)
		slog.WarnContext(ctx, "cannot read or write the records of a site now", "namespace", namespace, "resource", r.kind.Plural, "name", name, "error", err)
		return r.unavailable("the records of namespace "+namespace+" cannot be read or written now; retry later", name)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request took too long; if it was a write, it may have succeeded", 0)
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
