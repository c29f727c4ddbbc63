package aggregated

import (
	"context"
	"errors"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/paddock-health/paddock/apiserver/store"
)

// retryAfter is when to ask again, in seconds, while the storage of a site is
// away. It is short: kubectl asks ten times before it tells its user.
const retryAfter = 1

// status turns an error of a store into one that the API machinery answers with.
// Name is empty for a list.
func (r *resource) status(ctx context.Context, err error, name string) error {
	var deleted *store.DeletedError
	switch {
	case errors.Is(err, ErrNoSite), errors.Is(err, store.ErrNotFound), errors.As(err, &deleted):
		return apierrors.NewNotFound(r.groupResource(), name)
	case errors.Is(err, store.ErrBadPosition):
		return apierrors.NewBadRequest("continue: this is not where a page of this list ended; list from the start")
	case errors.Is(err, store.ErrNotReady), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrQueryTimeout):
		namespace := request.NamespaceValue(ctx)
		slog.WarnContext(ctx, "the records of a site are not available", "namespace", namespace, "resource", r.kind.Plural, "error", err)
		return r.unavailable("the records of namespace "+namespace+" are not available right now", name)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request ended before it was answered", 0)
	default:
		return err
	}
}

func (r *resource) unavailable(message, name string) error {
	answer := apierrors.NewServiceUnavailable(message)
	answer.ErrStatus.Details = &metav1.StatusDetails{
		Group: r.groupResource().Group, Kind: r.kind.Plural, Name: name, RetryAfterSeconds: retryAfter,
	}
	return answer
}
