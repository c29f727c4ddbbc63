// Package kubernetes asks the API server who a caller is (TokenReview) and what
// the caller may do (SubjectAccessReview), and remembers the answers for a short
// while. When the API server is away, remembered answers still count until they
// expire; afterwards access.ErrUnavailable is the answer to everything.
package kubernetes

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// tokenTTL is how long an accepted token counts without being reviewed again, never
	// past its own expiry: half of it as an answer of the API server, half of it as ours.
	tokenTTL = time.Minute
	// refusedTokenTTL is how long a refused one is refused without asking.
	refusedTokenTTL = 10 * time.Second
	// rightsTTL is how long a right, or its lack, is remembered: half of it as an
	// answer of the API server, half of it as ours.
	rightsTTL = 10 * time.Second
	// remembered is how many rights, and accepted tokens, are remembered at most.
	remembered = 4096
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 5 * time.Second
)

// Access answers with the API server's word.
type Access struct {
	tokens    authenticator.Token
	accepted  *utilcache.LRUExpireCache
	rights    authorizer.Authorizer
	answers   *utilcache.LRUExpireCache
	resources []schema.GroupResource
	now       func() time.Time
}

// New makes an Access. Resources are those by which a caller can see that a site
// exists: one right on any of them is enough.
func New(config *rest.Config, resources []schema.GroupResource) (*Access, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the review APIs: %w", err)
	}
	rights, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: clients.AuthorizationV1(),
		AllowCacheTTL:             rightsTTL / 2,
		DenyCacheTTL:              rightsTTL / 2,
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("make a delegating authorizer: %w", err)
	}
	return &Access{
		tokens:    cache.New(&reviewer{reviews: clients.AuthenticationV1().TokenReviews()}, false, tokenTTL/2, refusedTokenTTL),
		accepted:  utilcache.NewLRUExpireCache(remembered),
		rights:    rights,
		answers:   utilcache.NewLRUExpireCache(remembered),
		resources: resources,
		now:       time.Now,
	}, nil
}

// withReviewTimeout bounds the questions that one decision asks.
func withReviewTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, reviewTimeout)
}
