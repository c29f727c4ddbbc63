package kubernetes

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/apiserver/access"
)

// clock is the time of a test. It passes when the test advances it, and by a nanosecond whenever it is
// read, so that a busy machine makes no cached result too old.
type clock struct {
	start time.Time
	ahead atomic.Int64
}

func newClock() *clock                    { return &clock{start: time.Now()} }
func (c *clock) now() time.Time           { return c.start.Add(time.Duration(c.ahead.Add(1))) }
func (c *clock) advance(by time.Duration) { c.ahead.Add(int64(by)) }

// watching returns an Access that watches the objects of RBAC, what it asks, and its clock.
func watching(ctx SpecContext) (*Access, *questions, *clock) {
	GinkgoHelper()
	a, asked := newCounted()
	clock := newClock()
	a.now = clock.now
	runs, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(runs) }()
	DeferCleanup(func() { stop(); <-ended })
	Eventually(func() bool { _, isWatched := a.rbac.last("clinic"); return isWatched }).WithContext(ctx).Should(BeTrue())
	return a, asked, clock
}

var _ = Describe("Rights while the objects of RBAC are watched", func() {
	// seen makes a change, and waits until the watch has seen it: the clocks of tests are advanced after that.
	seen := func(ctx context.Context, a *Access, change func() error) {
		GinkgoHelper()
		began := a.now()
		Expect(change()).To(Succeed())
		Eventually(func() time.Time { changed, _ := a.rbac.last("clinic"); return changed }).WithContext(ctx).Should(BeTemporally(">=", began))
	}
	// reader returns a new caller. bind gives it the right to get patients in the namespace clinic, by a
	// binding of the namespace or of the cluster, and unbind removes the binding.
	reader := func(ctx context.Context, a *Access, name string, wide bool) (caller access.Caller, bind, unbind func(context.Context)) {
		GinkgoHelper()
		subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
		rules := []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}}}
		meta := metav1.ObjectMeta{Name: name}
		seen(ctx, a, func() error {
			_, err := clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			return err
		})
		of := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		bind = func(ctx context.Context) {
			seen(ctx, a, func() (err error) {
				if wide {
					_, err = clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: of, Subjects: subjects}, metav1.CreateOptions{})
				} else {
					_, err = clients.RbacV1().RoleBindings("clinic").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: of, Subjects: subjects}, metav1.CreateOptions{})
				}
				return err
			})
			// A review before kube-apiserver knows the change would be cached until the clock is advanced.
			awaitReview(ctx, name, rules[0], true)
		}
		unbind = func(ctx context.Context) {
			seen(ctx, a, func() error {
				if wide {
					return clients.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
				}
				return clients.RbacV1().RoleBindings("clinic").Delete(ctx, name, metav1.DeleteOptions{})
			})
			awaitReview(ctx, name, rules[0], false)
		}
		return access.Caller{Name: name}, bind, unbind
	}
	var forbidden *access.ForbiddenError

	for name, wide := range map[string]bool{"namespace": false, "cluster": true} {
		It("are cached until a binding of the "+name+" is removed", func(ctx SpecContext) {
			a, asked, clock := watching(ctx)
			caller, bind, unbind := reader(ctx, a, "watched-"+name, wide)
			bind(ctx)
			allowed := func() error { return a.Authorize(ctx, caller, site, get("rex")) }
			Expect(allowed()).To(Succeed())
			clock.advance(rightsTTL + time.Second) // the change is past
			Expect(allowed()).To(Succeed())
			asked.rights.Store(0)
			clock.advance(answerTTL - time.Second)
			Expect(allowed()).To(Succeed())
			Expect(asked.rights.Load()).To(BeZero())
			unbind(ctx)
			Expect(allowed()).To(BeAssignableToTypeOf(forbidden))
			By("the lack of it is cached until it is granted")
			clock.advance(rightsTTL + time.Second)
			Expect(allowed()).To(BeAssignableToTypeOf(forbidden))
			asked.rights.Store(0)
			clock.advance(answerTTL - time.Second)
			Expect(allowed()).To(BeAssignableToTypeOf(forbidden))
			Expect(asked.rights.Load()).To(BeZero())
			bind(ctx)
			Expect(allowed()).To(Succeed())
		}, SpecTimeout(time.Minute))
	}

	It("are renewed in the background before they expire", func(ctx SpecContext) {
		a, asked, clock := watching(ctx)
		caller, bind, _ := reader(ctx, a, "renewed", false)
		bind(ctx)
		allowed := func() error { return a.Authorize(ctx, caller, site, get("rex")) }
		Expect(allowed()).To(Succeed())
		clock.advance(rightsTTL + time.Second)
		Expect(allowed()).To(Succeed())
		for range 3 {
			clock.advance(watchedRightsTTL/2 + time.Second)
			Expect(a.Authorize(ctx, caller, site, access.Action{Verb: "watch", Group: group, Resource: "patients"})).NotTo(Succeed()) // an answer
			release := asked.hold()
			before := asked.rights.Load()
			Expect(allowed()).To(Succeed(), "without the review, which has no answer yet")
			Eventually(asked.rights.Load).WithContext(ctx).Should(Equal(before + 1))
			Expect(allowed()).To(Succeed())
			Expect(asked.rights.Load()).To(Equal(before+1), "one review at a time")
			release()
			Eventually(asked.inFlight.Load).WithContext(ctx).Should(BeZero())
			Eventually(func() int { return len(a.renewals) }).WithContext(ctx).Should(BeZero())
		}
	}, SpecTimeout(time.Minute))

	It("of another authorizer end when they are renewed", func(ctx SpecContext) {
		a, asked, clock := watching(ctx)
		caller := access.Caller{Name: "of-a-webhook"}
		caller.Identity = identity(caller)
		clock.advance(rightsTTL + time.Second)
		a.caches.of(site.Namespace).rights.add(rightKey{caller.Identity, get("")}, &result{allowed: true, reviewed: a.now()}, watchedRightsTTL)
		clock.advance(watchedRightsTTL/2 + time.Second)
		Expect(a.HasAnyRight(ctx, access.Caller{Name: "system:serviceaccount:clinic:site-reader"}, hidden)).To(BeTrue()) // an answer
		asked.rights.Store(0)
		Expect(a.Authorize(ctx, caller, site, get("rex"))).To(Succeed())
		Eventually(func() error { return a.Authorize(ctx, caller, site, get("rex")) }).WithContext(ctx).Should(BeAssignableToTypeOf(forbidden))
	}, SpecTimeout(time.Minute))

	It("to a hidden site begin and end with bindings", func(ctx SpecContext) {
		a, _, _ := watching(ctx)
		caller, bind, unbind := reader(ctx, a, "guest", false)
		bind(ctx)
		visible := func() (bool, error) { return a.HasAnyRight(ctx, caller, hidden) }
		Expect(visible()).To(BeTrue())
		unbind(ctx)
		Expect(visible()).To(BeFalse())
	}, SpecTimeout(time.Minute))

	It("are cached for ten seconds without a right to watch", func(ctx SpecContext) {
		a, asked := newCounted()
		clock := newClock()
		a.now = clock.now
		reader := access.Caller{Name: "system:serviceaccount:clinic:reader"}
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		clock.advance(rightsTTL - time.Second)
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(asked.rights.Load()).To(BeEquivalentTo(1))
		clock.advance(time.Second)
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(asked.rights.Load()).To(BeEquivalentTo(2))
	})
})
