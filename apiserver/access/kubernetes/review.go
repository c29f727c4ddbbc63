package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clientauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

const (
	// maxReviews is the maximum number of TokenReviews in flight, per process. Further reviews
	// wait, so that a flood of well-formed tokens does not overload kube-apiserver.
	maxReviews = 32
	// maxReviewWait limits how long a TokenReview waits. At the limit the request gets 503.
	maxReviewWait = time.Second
)

var errTooManyReviews = errors.New("too many tokens are being reviewed")

// reviewer authenticates tokens by TokenReview. It returns an error only if there is no result.
type reviewer struct {
	reviews  clientauthentication.TokenReviewInterface
	inFlight chan struct{}
}

func newReviewer(reviews clientauthentication.TokenReviewInterface) *reviewer {
	return &reviewer{reviews: reviews, inFlight: make(chan struct{}, maxReviews)}
}

// AuthenticateToken implements authenticator.Token.
func (r *reviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if err := r.begin(ctx); err != nil {
		return nil, false, err
	}
	defer func() { <-r.inFlight }()
	audiences, _ := authenticator.AudiencesFrom(ctx)
	ctx, cancel := withReviewTimeout(ctx)
	defer cancel()
	review, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated || !confirmed(audiences, review.Status.Audiences) {
		return nil, false, nil
	}
	found := review.Status.User
	info := &user.DefaultInfo{Name: found.Username, UID: found.UID, Groups: found.Groups}
	if len(found.Extra) > 0 {
		info.Extra = make(map[string][]string, len(found.Extra))
		for k, v := range found.Extra {
			info.Extra[k] = v
		}
	}
	return &authenticator.Response{User: info, Audiences: review.Status.Audiences}, true, nil
}

// begin waits until fewer than maxReviews reviews are in flight, and counts another review. Errors:
// errTooManyReviews after maxReviewWait, the error of ctx.
func (r *reviewer) begin(ctx context.Context) error {
	select {
	case r.inFlight <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(maxReviewWait)
	defer timer.Stop()
	select {
	case r.inFlight <- struct{}{}:
		return nil
	case <-timer.C:
		return errTooManyReviews
	case <-ctx.Done():
		return ctx.Err()
	}
}

// confirmed reports whether a review returned one of the requested audiences, or none were
// requested. An authenticator that ignores audiences returns none, and has checked the token for
// kube-apiserver only.
func confirmed(requested, returned []string) bool {
	return len(requested) == 0 || slices.ContainsFunc(requested, func(audience string) bool { return slices.Contains(returned, audience) })
}
