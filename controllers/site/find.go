package site

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find returns an object, or nil without an error if the object or its kind does not exist.
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

// findInto reads an object into into. It reports whether the object exists.
func findInto(ctx context.Context, from client.Reader, key client.ObjectKey, into client.Object) (there bool, err error) {
	switch err := from.Get(ctx, key, into); {
	case apierrors.IsNotFound(err) || kindMissing(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}

// kindMissing reports whether err says that the kind is not installed.
func kindMissing(err error) bool {
	var missing *meta.NoKindMatchError
	return errors.As(err, &missing)
}
