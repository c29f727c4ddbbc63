package aggregated

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/paddock-health/paddock/apiserver/access"
)

// callerOf is whose request it is.
func callerOf(ctx context.Context) (access.Caller, error) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return access.Caller{}, errors.New("the request has no user")
	}
	return access.Caller{Name: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(), Extra: user.GetExtra()}, nil
}
