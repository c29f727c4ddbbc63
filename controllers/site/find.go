package site

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find reads an object; nil without an error means that there is none.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, key client.ObjectKey) (*T, error) {
	obj := P(new(T))
	if there, err := findInto(ctx, from, key, obj); !there {
		return nil, err
	}
	return obj, nil
}

// findInto reads an object into one of its kind, and reports whether there is one.
func findInto(ctx context.Context, from client.Reader, key client.ObjectKey, into client.Object) (there bool, err error) {
	switch err := from.Get(ctx, key, into); {
	case apierrors.IsNotFound(err) || kindMissing(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}

// kindMissing reports whether the cluster does not know the kind, as where an operator is
// not installed.
func kindMissing(err error) bool {
	var missing *meta.NoKindMatchError
	return errors.As(err, &missing)
}
