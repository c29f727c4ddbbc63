package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/access"
)

// questions counts what an Access asks the API server. While gate is not nil, questions wait for it to close.
type questions struct {
	tokens, rights, inFlight, most atomic.Int64
	mu                             sync.Mutex
	gate                           chan struct{}
}

func (q *questions) hold() (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	gate := make(chan struct{})
	q.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (q *questions) count(r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		q.tokens.Add(1)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		q.rights.Add(1)
	}
}

// RoundTripper between an Access and the API server.
type counted struct {
	questions *questions
	next      http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.questions.count(r)
	now := c.questions.inFlight.Add(1)
	defer c.questions.inFlight.Add(-1)
	for most := c.questions.most.Load(); now > most && !c.questions.most.CompareAndSwap(most, now); {
		most = c.questions.most.Load()
	}
	c.questions.mu.Lock()
	gate := c.questions.gate
	c.questions.mu.Unlock()
	if gate != nil {
		<-gate
		// The time at the gate does not count towards reviewTimeout.
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	return c.next.RoundTrip(r)
}

// newCounted is an Access with as many resources as Paddock has, and what it asks. Its clock stands still.
func newCounted() (*Access, *questions) {
	GinkgoHelper()
	asked := &questions{}
	config := rest.CopyConfig(control.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{asked, next} })
	var resources []schema.GroupResource
	for i := range 18 {
		resources = append(resources, schema.GroupResource{Group: group, Resource: fmt.Sprintf("kind%d", i)})
	}
	a, err := New(config, append(resources, schema.GroupResource{Group: group, Resource: "patients"}))
	Expect(err).NotTo(HaveOccurred())
	a.now = newClock().now
	// The first refusal also asks whether the API server is ready, and is reviewed again.
	var forbidden *access.ForbiddenError
	Expect(a.Authorize(context.Background(), access.Caller{Name: "first"}, access.Tenant{Namespace: "elsewhere"}, get(""))).To(BeAssignableToTypeOf(forbidden))
	asked.rights.Store(0)
	return a, asked
}

// forge makes a JWT that nobody has signed.
func forge(header, payload map[string]any) string {
	GinkgoHelper()
	var parts []string
	for _, part := range []map[string]any{header, payload} {
		text, err := json.Marshal(part)
		Expect(err).NotTo(HaveOccurred())
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString([]byte("signature"))), ".")
}

var _ = Describe("Questions to the API server", func() {
	const allRights = 1 + 7*19
	caller := func(n int) access.Caller { return access.Caller{Name: fmt.Sprintf("stranger-%d", n)} }

	It("are two at most for a request without the right", func(ctx SpecContext) {
		a, asked := newCounted()
		var forbidden *access.ForbiddenError
		for range 3 {
			Expect(a.Authorize(ctx, caller(1), site, get("rex"))).To(BeAssignableToTypeOf(forbidden))
		}
		Expect(asked.rights.Load()).To(BeEquivalentTo(2))
		Expect(a.Authorize(ctx, caller(1), hidden, get("rex"))).To(BeAssignableToTypeOf(forbidden))
		Expect(asked.rights.Load()).To(BeEquivalentTo(2))
	})

	It("settle once a minute whether a caller has any right on a hidden site", func(ctx SpecContext) {
		a, asked := newCounted()
		verdict := func(c access.Caller) bool {
			GinkgoHelper()
			found, err := a.HasAnyRight(ctx, c, hidden)
			Expect(err).NotTo(HaveOccurred())
			return found
		}
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { Expect(verdict(caller(1))).To(BeFalse()) })
		}
		group.Wait()
		Expect(verdict(caller(1))).To(BeFalse())
		Expect(asked.rights.Load()).To(BeEquivalentTo(allRights))
		Expect(asked.most.Load()).To(BeNumerically("<=", verdictParallelism))

		By("the right to read the Site ends them at once, any other early")
		asked.rights.Store(0)
		Expect(verdict(access.Caller{Name: "system:serviceaccount:clinic:site-reader"})).To(BeTrue())
		Expect(asked.rights.Load()).To(BeEquivalentTo(1))
		Expect(verdict(access.Caller{Name: "system:serviceaccount:clinic:reader"})).To(BeTrue())
		before := asked.rights.Load()
		Expect(before).To(BeNumerically("<", allRights))
		Expect(verdict(access.Caller{Name: "system:serviceaccount:clinic:reader"})).To(BeTrue())
		Expect(asked.rights.Load()).To(Equal(before))
	})

	It("are not asked again because of strangers, of this site or another", func(ctx SpecContext) {
		a, asked := newCounted()
		reader := access.Caller{Name: "system:serviceaccount:clinic:reader"}
		reader.Identity = identity(reader)
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(a.HasAnyRight(ctx, reader, hidden)).To(BeTrue())
		for i := range maxGranted + maxRefused {
			for _, namespace := range []string{site.Namespace, "elsewhere"} {
				cache := a.caches.of(namespace)
				cache.rights.add(rightKey{identity(caller(i)), get("")}, &result{reviewed: time.Now()}, rightsTTL)
				cache.verdicts.add(identity(caller(i)), &result{reviewed: time.Now()}, verdictTTL)
			}
			a.caches.of("elsewhere").rights.add(rightKey{identity(caller(i)), get("")}, &result{allowed: true, reviewed: time.Now()}, rightsTTL)
		}
		asked.rights.Store(0)
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(a.HasAnyRight(ctx, reader, hidden)).To(BeTrue())
		Expect(asked.rights.Load()).To(BeZero())
	})

	It("are not asked about tokens that nothing can verify", func(ctx SpecContext) {
		a, asked := newCounted()
		signed, ours := map[string]any{"alg": "RS256"}, map[string]any{"aud": []string{site.Audience()}}
		many := []string{site.Audience()}
		for i := range 800 {
			many = append(many, fmt.Sprintf("audience-%d", i))
		}
		bad := map[string]string{
			"opaque":               "0123456789abcdef",
			"two parts":            "e30.e30",
			"four parts":           forge(signed, ours) + ".e30",
			"no base64":            "a!.b!.c!",
			"standard base64":      "e30=.e30=.e30=",
			"no JSON":              base64.RawURLEncoding.EncodeToString([]byte("{")) + ".e30.e30",
			"no object":            base64.RawURLEncoding.EncodeToString([]byte("[]")) + ".e30.e30",
			"no algorithm":         forge(map[string]any{}, ours),
			"alg none":             forge(map[string]any{"alg": "none"}, ours),
			"alg NONE":             forge(map[string]any{"alg": "NONE"}, ours),
			"no signature":         strings.TrimSuffix(forge(signed, ours), base64.RawURLEncoding.EncodeToString([]byte("signature"))),
			"800 audiences":        forge(signed, map[string]any{"aud": many}),
			"audiences of numbers": forge(signed, map[string]any{"aud": []int{1}}),
			"huge":                 forge(signed, map[string]any{"aud": ours["aud"], "x": strings.Repeat("x", maxTokenBytes)}),
			"expired":              forge(signed, map[string]any{"aud": ours["aud"], "exp": time.Now().Add(-time.Minute).Unix()}),
		}
		for name, token := range bad {
			for _, at := range []*access.Tenant{&site, &hidden, nil} {
				_, err := a.Authenticate(ctx, at, token)
				Expect(err).To(beInvalidToken(), "%s at %v", name, at)
			}
		}
		By("nor, at a site that takes none, about those for others")
		for _, audience := range []any{nil, "", "elsewhere", []string{"paddock.health/clinic/elm", "https://kubernetes.default.svc"}} {
			_, err := a.Authenticate(ctx, &site, forge(signed, map[string]any{"aud": audience}))
			Expect(err).To(beInvalidToken())
			Expect(err).To(MatchError(ContainSubstring(site.Audience())))
		}
		Expect(asked.tokens.Load()).To(BeZero())

		By("a site that takes tokens of the API server has others reviewed, once")
		for _, token := range []string{"0123456789abcdef", forge(signed, map[string]any{"aud": "elsewhere"})} {
			for range 3 {
				_, err := a.Authenticate(ctx, &lenient, token)
				Expect(err).To(beInvalidToken())
			}
		}
		Expect(asked.tokens.Load()).To(BeEquivalentTo(2))
	})

	It("are one for a token that is forged, for a while", func(ctx SpecContext) {
		a, asked := newCounted()
		for i, at := range []*access.Tenant{&site, &hidden, nil} {
			token := forge(map[string]any{"alg": "RS256"}, map[string]any{"aud": site.Audience(), "n": i})
			for range 3 {
				_, err := a.Authenticate(ctx, at, token)
				Expect(err).To(beInvalidToken())
			}
		}
		Expect(asked.tokens.Load()).To(BeEquivalentTo(3))
	})

	It("about tokens are bounded in flight", func(ctx SpecContext) {
		a, asked := newCounted()
		release := asked.hold()
		DeferCleanup(release)
		answers := make(chan error, 2*maxReviews)
		for i := range cap(answers) {
			go func() {
				_, err := a.Authenticate(ctx, &site, forge(map[string]any{"alg": "RS256"}, map[string]any{"aud": site.Audience(), "n": i}))
				answers <- err
			}()
		}
		for range maxReviews {
			var err error
			Eventually(answers).WithContext(ctx).Should(Receive(&err))
			Expect(err).To(MatchError(access.ErrUnavailable))
		}
		// The other reviews have begun, but may not have been sent yet.
		Eventually(asked.inFlight.Load).WithContext(ctx).Should(BeEquivalentTo(maxReviews))
		Expect(asked.tokens.Load()).To(BeEquivalentTo(maxReviews))
		release()
		for range maxReviews {
			var err error
			Eventually(answers).WithContext(ctx).Should(Receive(&err))
			Expect(err).To(beInvalidToken())
		}
		Expect(asked.most.Load()).To(BeEquivalentTo(maxReviews))
	}, NodeTimeout(30*time.Second))
})
