package site_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site"
)

var _ = Describe("Connections of the release before", func() {
	connection := func(namespace, name, siteName string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name,
				Labels:      map[string]string{v1alpha1.SiteKeyLabel: "key"},
				Annotations: map[string]string{v1alpha1.SiteAnnotation: siteName},
			},
			Type: v1alpha1.SecretTypeDSN, Data: map[string][]byte{v1alpha1.DSNKey: []byte("postgres://" + namespace + "/oak")},
		}
	}
	gone := func(ctx context.Context, s *corev1.Secret) func() bool {
		return func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(s), &corev1.Secret{}))
		}
	}
	move := func(keep time.Duration) (stop func()) {
		controller := clientOf(controllerUser)
		former := &site.FormerConnections{Client: controller, Live: controller, From: operatorNamespace, To: connectionsNamespace, Keep: keep}
		running, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- former.Start(running) }()
		stop = sync.OnceFunc(func() {
			cancel()
			Expect(<-done).To(Succeed())
		})
		DeferCleanup(stop)
		return stop
	}

	It("are copied at once, and removed when API servers of that release have ended", func(ctx SpecContext) {
		first := connection(operatorNamespace, "site-former-1", "former-1/oak")
		handed := connection(operatorNamespace, "site-former-2", "former-2/oak")
		newer := connection(connectionsNamespace, "site-former-2", "former-2/oak")
		foreign := connection(operatorNamespace, "an-administrators", "former-3/oak")
		for _, s := range []*corev1.Secret{first, handed, newer, foreign} {
			Expect(admin.Create(ctx, s)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, s))).To(Succeed()) })
		}
		copied := connection(connectionsNamespace, first.Name, "")
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, copied))).To(Succeed()) })
		stop := move(time.Hour)
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(copied), copied) }).Should(Succeed())
		Expect(copied.Data).To(Equal(first.Data))
		Expect(copied.Type).To(Equal(first.Type))
		Expect(copied.Labels).To(Equal(first.Labels))
		Expect(copied.Annotations).To(Equal(first.Annotations))
		Expect(gone(ctx, first)()).To(BeFalse())
		stop()
		move(time.Millisecond)
		Eventually(gone(ctx, first)).Should(BeTrue())
		Eventually(gone(ctx, handed)).Should(BeTrue())
		Expect(get[corev1.Secret](ctx, newer.Namespace, newer.Name).Data).To(Equal(newer.Data))
		Expect(gone(ctx, foreign)()).To(BeFalse())
		Expect(gone(ctx, connection(connectionsNamespace, foreign.Name, ""))()).To(BeTrue())
	}, NodeTimeout(time.Minute))
})
