package aggregated

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/paddock-health/paddock/apiserver/access"
)

// callerOf returns the caller of a request.
func callerOf(ctx context.Context) (access.Caller, error) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return access.Caller{}, errors.New("the request has no user")
	}
	return callerFrom(user), nil
}
