package customresources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
)

const creating = "create"

// errorOf is an error of the API server in the terms of package store. Only what a caller
// can do something about is told; the rest is for the log.
func (r *Resources) errorOf(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && doing != creating: // else it is the namespace
		return store.ErrNotFound
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return &store.PreconditionError{Key: store.Key{Type: r.kind.resource}}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return fault.Faults{{Code: fault.CodeInvalidValue, Detail: "the cluster does not take this: " + err.Error()}}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	default:
		return fmt.Errorf("%w: %s %s: %w", store.ErrUnavailable, doing, r.kind.resource, err)
	}
}
