package webhook_test

import (
	"bytes"
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/controllers/secrets"
)

// handedOver is what the process that delivers has of a Webhook's Secrets, nil without any. It
// reads with that process's rights.
func handedOver(ctx context.Context, hook *v1alpha1.Webhook) func() (map[string]string, error) {
	program := asAccount("paddock-delivery")
	return func() (map[string]string, error) {
		secret := &corev1.Secret{}
		err := program.Get(ctx, client.ObjectKey{Namespace: secretsNamespace, Name: v1alpha1.DeliverySecretName(hook.Namespace, hook.Name)}, secret)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		got := map[string]string{"revision": secret.Annotations[v1alpha1.WebhookRevisionAnnotation]}
		for key, value := range secret.Data {
			got[key] = string(value)
		}
		return got, nil
	}
}

var _ = Describe("What a Webhook's Secrets hold", func() {
	var (
		namespace     string
		first, second = signing.NewShared(), signing.NewShared()
	)
	ref := func(name string) *v1alpha1.WebhookSecretReference {
		return &v1alpha1.WebhookSecretReference{Name: name}
	}
	create := func(ctx context.Context, name string, data map[string]string) *corev1.Secret {
		GinkgoHelper()
		secret := newSecret(namespace, name, v1alpha1.SecretTypeWebhook, "")
		secret.StringData = data
		Expect(admin.Create(ctx, secret)).To(Succeed())
		return secret
	}
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("is handed to the process that delivers, and follows them", func(ctx SpecContext) {
		create(ctx, "first", map[string]string{"secret": first})
		create(ctx, "second", map[string]string{"secret": second, "X-Other": "not of headersSecretRef"})
		headers := create(ctx, "headers", map[string]string{"X-Practice": "1042", "secret": "no header", "tls.key": "no header", "secret.previous": "no header"})
		hook := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.SecretRef, s.HeadersSecretRef = ref("first"), ref("headers") })
		Expect(admin.Create(ctx, hook)).To(Succeed())
		Eventually(handedOver(ctx, hook)).Should(Equal(map[string]string{"revision": hook.Revision(), "secret": first, "X-Practice": "1042"}))

		By("a rotation")
		patch(ctx, hook, `{"spec":{"secretRef":{"name":"second"},"previousSecret":{"name":"first","until":"2999-01-01T00:00:00Z"}}}`)
		Expect(hook.Revision()).To(HaveSuffix("/2"))
		Eventually(handedOver(ctx, hook)).Should(Equal(map[string]string{
			"revision": hook.Revision(), "secret": second, "secret.previous": first, "X-Practice": "1042",
		}))
		patch(ctx, headers, `{"stringData":{"X-Practice":"1043"}}`)
		Eventually(handedOver(ctx, hook)).Should(HaveKeyWithValue("X-Practice", "1043"))

		By("settings that cannot be used")
		Expect(admin.Delete(ctx, headers)).To(Succeed())
		Eventually(handedOver(ctx, hook)).Should(BeNil())
		expectAccepted(ctx, hook, "False SecretNotFound")
		create(ctx, "headers", map[string]string{"X-Practice": "1044"})
		Eventually(handedOver(ctx, hook)).Should(HaveKeyWithValue("X-Practice", "1044"))

		By("someone who meddles with it")
		meddled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretsNamespace, Name: v1alpha1.DeliverySecretName(namespace, hook.Name)}}
		patch(ctx, meddled, `{"stringData":{"X-Practice":"1"}}`)
		Eventually(handedOver(ctx, hook)).Should(HaveKeyWithValue("X-Practice", "1044"))

		By("a Webhook that goes")
		Expect(admin.Delete(ctx, hook)).To(Succeed())
		Eventually(handedOver(ctx, hook)).Should(BeNil())
	})

	It("is not taken where it is too much", func(ctx SpecContext) {
		create(ctx, "first", map[string]string{"secret": first})
		create(ctx, "headers", map[string]string{"X-Long": string(bytes.Repeat([]byte("x"), 600<<10))})
		hook := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.SecretRef, s.HeadersSecretRef = ref("first"), ref("headers") })
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectAccepted(ctx, hook, "False InvalidSecret")
		Expect(handedOver(ctx, hook)()).To(BeNil())
	})

	It("is read by the process that delivers nowhere else", func(ctx SpecContext) {
		create(ctx, "first", map[string]string{"secret": first})
		program := asAccount("paddock-delivery")
		for _, where := range []string{namespace, "paddock-system", "default"} {
			Expect(apierrors.IsForbidden(program.Get(ctx, client.ObjectKey{Namespace: where, Name: "first"}, &corev1.Secret{}))).To(BeTrue())
			Expect(apierrors.IsForbidden(program.List(ctx, &corev1.SecretList{}, client.InNamespace(where)))).To(BeTrue())
		}
		Expect(program.List(ctx, &corev1.SecretList{}, client.InNamespace(secretsNamespace))).To(Succeed())
		Expect(apierrors.IsForbidden(asAccount("paddock-apiserver").List(ctx, &corev1.SecretList{}, client.InNamespace(secretsNamespace)))).To(BeTrue())
	})
})

var _ = Describe("What was handed over for a Webhook that went while no controller ran", Serial, func() {
	It("goes when one does", func(ctx SpecContext) {
		hook := newHook(newNamespace(ctx))
		Expect(admin.Create(ctx, hook)).To(Succeed())
		Eventually(handedOver(ctx, hook)).Should(HaveKey("secret"))
		stopControllers()
		Expect(admin.Delete(ctx, hook)).To(Succeed())
		Expect(handedOver(ctx, hook)()).To(HaveKey("secret"))
		stopControllers = startControllers(secrets.Cluster)
		Eventually(handedOver(ctx, hook)).Should(BeNil())
	}, NodeTimeout(3*time.Minute))
})
