package targets_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery/targets"
	"github.com/paddock-health/paddock/apiserver/store"
)

// stall delays what watches report while it is locked.
type stall struct {
	sync.RWMutex
	next http.RoundTripper
}

func (s *stall) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = &stalledBody{response.Body, s}
	}
	return response, err
}

type stalledBody struct {
	io.ReadCloser
	stall *stall
}

func (b *stalledBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.stall.RLock()
	defer b.stall.RUnlock()
	return n, err
}

var _ = Describe("A process whose watch of Webhooks falls behind", func() {
	It("delivers the events that were accepted for a Webhook which it has not seen, in order", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		off := newHook(ctx, namespace, func(hook *v1alpha1.Webhook) { hook.Name, *hook.Spec.Active = "off", false })
		old := newHook(ctx, namespace, func(hook *v1alpha1.Webhook) { hook.Name = "old" })
		rights, err := cluster.UserConfig("system:serviceaccount:paddock-system:paddock-delivery")
		Expect(err).NotTo(HaveOccurred())
		watches := &stall{}
		rights.Wrap(func(next http.RoundTripper) http.RoundTripper { watches.next = next; return watches })
		slow, err := targets.New(rights, targets.Options{SecretsNamespace: secretsNamespace})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- slow.Run(running) }()
		problem := func(hook *v1alpha1.Webhook, accepted time.Time) error {
			settings, err := slow.Site(namespace).Webhook(ctx, idOf(hook), accepted)
			if err == nil {
				Expect(settings.Disabled).NotTo(BeEmpty(), "its Secrets were not copied")
			}
			return err
		}
		notCopied := MatchError(ContainSubstring("has not copied the Secrets"))
		Eventually(func() error { return problem(off, longAgo) }).Should(Succeed())
		Eventually(func() error { return problem(old, longAgo) }).Should(notCopied, "the cache of Secrets is complete")

		watches.Lock()
		resume := sync.OnceFunc(watches.Unlock)
		DeferCleanup(func() {
			resume()
			stop()
			Expect(<-done).To(Succeed())
		})
		hook := newHook(ctx, namespace, func(hook *v1alpha1.Webhook) { hook.Spec.Ordering = v1alpha1.OrderingPerSubject })
		patch(ctx, off, `{"spec":{"active":true}}`)
		Expect(slow.Ordered(namespace, idOf(hook))).To(BeTrue())
		for _, each := range []*v1alpha1.Webhook{hook, off} {
			Expect(problem(each, time.Now())).To(notCopied)
		}
		Expect(problem(hook, longAgo)).To(MatchError(store.ErrNotFound), "as for one that was deleted")
		Expect(problem(off, longAgo)).To(Succeed(), "as for one that is not active")

		resume()
		Eventually(func() error { return problem(hook, longAgo) }).Should(notCopied)
	}, NodeTimeout(time.Minute))
})
