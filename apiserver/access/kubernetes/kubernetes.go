// Package kubernetes authenticates callers by TokenReview and authorizes them by
// SubjectAccessReview. It caches accepted tokens for up to a minute, and rights until the objects of
// RBAC change, for up to five minutes. While kube-apiserver is unavailable, cached results are used
// for up to a minute. Other requests get access.ErrUnavailable.
package kubernetes

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// tokenTTL is how long an accepted token is accepted without another review, but not after its
	// expiry. It is the sum of the times of two caches: a TokenReview is cached for reviewTTL, and
	// then the accepted token for tokenTTL - reviewTTL. A request with a token that was reviewed
	// tokenRenewal ago or earlier starts another review in the background.
	tokenTTL     = time.Minute
	reviewTTL    = 10 * time.Second
	tokenRenewal = 2 * reviewTTL
	// refusedTokenTTL is how long a refused token is refused without another review.
	refusedTokenTTL = 10 * time.Second
	// maxAccepted is how many accepted tokens the process caches. At the limit the least recently
	// used token is evicted.
	maxAccepted = 4096
	// reviewTimeout is the time limit of one review.
	reviewTimeout = 5 * time.Second
)

// Access authenticates and authorizes callers by TokenReview and SubjectAccessReview of
// kube-apiserver. It is safe for concurrent use.
type Access struct {
	tokens    authenticator.Token
	accepted  *utilcache.LRUExpireCache
	rights    authorizer.Authorizer
	ready     *readiness
	caches    *siteCaches
	verdicts  singleflight.Group
	resources []schema.GroupResource
	now       func() time.Time
	rbac      *rbacWatch
	// answered is when the last review with an answer ended, in nanoseconds since the epoch. A
	// TokenReview from the cache counts too, so answered can be up to reviewTTL late.
	answered atomic.Int64
	// renewals has an element for each review in the background.
	renewals chan struct{}
}

// New returns an Access. resources are the resources of records: a hidden Site exists for callers
// with a right to any of them.
func New(config *rest.Config, resources []schema.GroupResource) (*Access, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	ready := new(readiness)
	ready.count(config)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for TokenReview and SubjectAccessReview: %w", err)
	}
	ready.client = clients.Discovery().RESTClient()
	rights, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: clients.AuthorizationV1(),
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("create a delegating authorizer: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the metadata of RBAC: %w", err)
	}
	a := &Access{
		tokens:    cache.New(newReviewer(clients.AuthenticationV1().TokenReviews()), false, reviewTTL, refusedTokenTTL),
		accepted:  utilcache.NewLRUExpireCache(maxAccepted),
		rights:    rights,
		ready:     ready,
		caches:    newSiteCaches(),
		resources: resources,
		now:       time.Now,
		renewals:  make(chan struct{}, maxRenewals),
	}
	a.rbac = newRBACWatch(objects, func() time.Time { return a.now() })
	return a, nil
}

// Run watches the objects of RBAC until ctx ends. Without it, rights are cached for 10 s.
func (a *Access) Run(ctx context.Context) { a.rbac.Run(ctx) }

// withReviewTimeout returns a context for one review.
func withReviewTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, reviewTimeout)
}
