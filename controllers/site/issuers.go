package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
	"github.com/paddock-health/paddock/apiserver/egress"
)

const (
	// issuerDelay is the delay before the keys are fetched again after a failure.
	issuerDelay = 20 * time.Second
	// issuerInterval is the delay before the keys are fetched again after a success.
	issuerInterval = 5 * time.Minute
)

var (
	keysKnown        = verdict{metav1.ConditionTrue, v1alpha1.ReasonKeysKnown, "The keys of all issuers are known."}
	issuersUnchecked = verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The Site is not accepted, so its issuers are not checked. See the condition Accepted."}
)

// checkIssuers fetches the keys of the Site's issuers in the same way as the API servers, and
// reports failures in the status. Ready does not depend on the result, because tokens of other
// issuers, and tokens signed with keys that the API servers have cached, are still accepted.
func (r *Reconciler) checkIssuers(ctx context.Context, s *scope) (step, error) {
	specs := s.site.Spec.Access.Issuers
	if len(specs) == 0 {
		r.issuers.forget(nameOf(s.site))
		return proceed, nil
	}
	if s.siteClaim == nil {
		s.found.issuersReady = &issuersUnchecked
		return proceed, nil
	}
	known, fresh := r.issuers.find(s.site, r.Now())
	if !fresh {
		known = issuerCheck{
			uid: s.site.UID, issuers: specs, at: r.Now(), verdict: decideIssuers(specs, r.fetchKeys(ctx, specs)),
		}
		if err := ctx.Err(); err != nil {
			return leave, err
		}
		r.issuers.remember(nameOf(s.site), known)
	}
	s.found.issuersReady = &known.verdict
	s.lookAgain(known.until().Sub(r.Now()))
	return proceed, nil
}

// fetchKeys fetches the keys of all issuers concurrently. It returns one error per issuer, in order,
// which is nil if the keys were fetched.
func (r *Reconciler) fetchKeys(ctx context.Context, specs []v1alpha1.Issuer) []error {
	problems := make([]error, len(specs))
	var group sync.WaitGroup
	for i := range specs {
		group.Go(func() {
			_, problems[i] = discovery.Fetch(ctx, r.DialIssuers, discovery.Issuer{
				URL: specs[i].URL, DiscoveryURL: specs[i].DiscoveryURL, JWKS: specs[i].JWKS, CABundle: string(specs[i].CABundle),
			})
			if problems[i] != nil {
				logf.FromContext(ctx).Info("cannot fetch the keys of an issuer", "issuer", specs[i].Name, "problem", discovery.Problem(problems[i]))
			}
		})
	}
	group.Wait()
	return problems
}

// decideIssuers returns a verdict that names all issuers whose keys cannot be fetched. Its reason is
// that of the first of these issuers. If there are none, it returns keysKnown.
func decideIssuers(specs []v1alpha1.Issuer, problems []error) verdict {
	decided := keysKnown
	var messages []string
	for i, err := range problems {
		if err == nil {
			continue
		}
		reason, advice := adviceOn(err)
		if messages == nil {
			decided = verdict{metav1.ConditionFalse, reason, ""}
		}
		messages = append(messages, fmt.Sprintf("The keys of issuer %q cannot be fetched: %s; %s.", specs[i].Name, discovery.Problem(err), advice))
	}
	if messages != nil {
		decided.message = strings.Join(messages, " ")
	}
	return decided
}

// adviceOn returns the condition's reason for an error of a fetch, and the remedy.
func adviceOn(err error) (reason, advice string) {
	switch {
	case errors.Is(err, egress.ErrProhibited):
		return v1alpha1.ReasonIssuerNotAllowed, "ask the operator to allow its network, or use an issuer at a public address"
	case errors.Is(err, discovery.ErrInvalid):
		return v1alpha1.ReasonInvalidIssuer, "correct spec.access.issuers, or the issuer's discovery document and keys"
	default:
		return v1alpha1.ReasonIssuerUnreachable, "the fetch is retried every 20 s; API servers still accept tokens signed with keys that they know"
	}
}

// issuerCheck is the cached result of a check of a Site's issuers.
type issuerCheck struct {
	uid     types.UID
	issuers []v1alpha1.Issuer
	at      time.Time
	verdict verdict
}

// until returns when the result expires.
func (c issuerCheck) until() time.Time {
	if c.verdict.status == metav1.ConditionTrue {
		return c.at.Add(issuerInterval)
	}
	return c.at.Add(issuerDelay)
}

// issuerChecks caches the results by Site, because a Site is reconciled more often than its issuers
// need to be checked.
type issuerChecks struct {
	mu    sync.Mutex
	known map[types.NamespacedName]issuerCheck
}

// find returns the result for a Site, which was completed by its class. The bool is false if there is
// none, if it is for other issuers than those of the Site now, or if it has expired.
func (c *issuerChecks) find(site *v1alpha1.Site, now time.Time) (issuerCheck, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.known[nameOf(site)]
	return known, ok && known.uid == site.UID && equality.Semantic.DeepEqual(known.issuers, site.Spec.Access.Issuers) && now.Before(known.until())
}

func (c *issuerChecks) remember(name types.NamespacedName, check issuerCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[types.NamespacedName]issuerCheck{}
	}
	c.known[name] = check
}

func (c *issuerChecks) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}

func nameOf(site *v1alpha1.Site) types.NamespacedName {
	return types.NamespacedName{Namespace: site.Namespace, Name: site.Name}
}
