package webhookstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/store"
)

const operationCreate = "create"

// errorOf converts an error of the API server to an error of package store. If a client can fix the
// request, the error is of type fielderror.Errors. An object that does not exist is store.ErrNotFound.
// An object that exists already and a conflict are *store.PreconditionError. The error of a context is
// returned as it is. All other errors, and a missing namespace in a create, wrap store.ErrUnavailable,
// whose details clients do not see.
func (r *Resources) errorOf(operation string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && operation != operationCreate: // in a create, the namespace is missing
		return store.ErrNotFound
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return &store.PreconditionError{Key: store.Key{Type: r.kind.resource}}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return fielderror.Errors{{Code: fielderror.CodeInvalidValue, Detail: "the Kubernetes API server rejected the request: " + err.Error()}}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	default:
		return fmt.Errorf("%w: %s %s in namespace %s: %w", store.ErrUnavailable, operation, r.kind.resource, r.namespace, err)
	}
}
