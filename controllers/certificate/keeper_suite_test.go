package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/controllers/certificate"
)

const (
	operatorNamespace = "paddock-system"
	apiService        = "v1alpha1.r4.fhir.paddock.health"
	host              = "paddock-aggregated.paddock-system.svc"
	webhooks          = "paddock-controller"
	webhookHost       = "paddock-controller.paddock-system.svc"
)

var _ = Describe("Keeper", func() {
	var (
		now    time.Time
		keeper *certificate.Keeper
	)
	secret := func(ctx context.Context, name string) *corev1.Secret {
		GinkgoHelper()
		s := &corev1.Secret{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, s)).To(Succeed())
		return s
	}
	registered := func(ctx context.Context) *apiregistrationv1.APIService {
		GinkgoHelper()
		s := &apiregistrationv1.APIService{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: apiService}, s)).To(Succeed())
		return s
	}
	configured := func(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
		GinkgoHelper()
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: webhooks}, c)).To(Succeed())
		return c
	}
	// isServed checks that what is served is trusted by kube-apiserver.
	isServed := func(ctx context.Context) {
		GinkgoHelper()
		trusted := []struct {
			name, host string
			bundle     []byte
		}{
			{keeper.Serving[0].Secret, host, registered(ctx).Spec.CABundle},
			{keeper.Serving[1].Secret, webhookHost, configured(ctx).Webhooks[0].ClientConfig.CABundle},
			{keeper.Serving[1].Secret, webhookHost, configured(ctx).Webhooks[1].ClientConfig.CABundle},
		}
		for _, by := range trusted {
			data := secret(ctx, by.name).Data
			pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
			Expect(err).NotTo(HaveOccurred())
			for _, bundle := range [][]byte{by.bundle, data["ca.crt"]} {
				roots := x509.NewCertPool()
				Expect(roots.AppendCertsFromPEM(bundle)).To(BeTrue())
				_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: by.host, CurrentTime: now})
				Expect(err).NotTo(HaveOccurred())
			}
		}
	}

	BeforeEach(func(ctx SpecContext) {
		now = time.Now()
		keeper = &certificate.Keeper{
			Client: controller, Live: controller, Namespace: operatorNamespace,
			Authority: "paddock-authority", Now: func() time.Time { return now },
			Serving: []certificate.Serving{
				{Secret: "paddock-apiserver-tls", DNSNames: []string{host}, APIService: apiService},
				{Secret: "paddock-controller-tls", DNSNames: []string{webhookHost}, ValidatingWebhooks: webhooks},
			},
		}
		service := &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: apiService},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: "r4.fhir.paddock.health", Version: "v1alpha1", GroupPriorityMinimum: 1000, VersionPriority: 10,
				Service: &apiregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: "paddock-aggregated", Port: ptr.To[int32](443)},
			},
		}
		Expect(admin.Create(ctx, service)).To(Succeed())
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks}}
		for _, name := range []string{"sites.paddock.health", "others.paddock.health"} {
			configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: "paddock-controller"},
				},
			})
		}
		Expect(admin.Create(ctx, configuration)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, service))).To(Succeed())
			Expect(client.IgnoreNotFound(admin.Delete(ctx, configuration))).To(Succeed())
			Expect(admin.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(operatorNamespace))).To(Succeed())
		})
		Eventually(func() []apiregistrationv1.APIServiceCondition { // kube-apiserver writes them once
			return registered(ctx).Status.Conditions
		}).WithContext(ctx).Should(Not(BeEmpty()))
	})

	It("makes all of it, and then writes nothing", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		versions := func() []string {
			return []string{
				secret(ctx, keeper.Serving[0].Secret).ResourceVersion, secret(ctx, keeper.Serving[1].Secret).ResourceVersion,
				secret(ctx, keeper.Authority).ResourceVersion, registered(ctx).ResourceVersion, configured(ctx).ResourceVersion,
			}
		}
		before := versions()
		Expect(secret(ctx, keeper.Serving[0].Secret).Data).To(HaveLen(3), "the authority's key is nowhere else")
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(versions()).To(Equal(before))
	})

	It("fills Secrets that a chart has made, and keeps their labels", func(ctx SpecContext) {
		for _, name := range []string{keeper.Serving[0].Secret, keeper.Authority} {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "paddock"}}}
			Expect(admin.Create(ctx, s)).To(Succeed())
		}
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		Expect(secret(ctx, keeper.Serving[0].Secret).Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "paddock"))
	})

	It("replaces certificates in time, and makes an authority known before it signs", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		first := secret(ctx, keeper.Serving[0].Secret).Data
		now = now.AddDate(0, 0, 61)
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		second := secret(ctx, keeper.Serving[0].Secret).Data
		Expect(second[corev1.TLSCertKey]).NotTo(Equal(first[corev1.TLSCertKey]))
		Expect(second["ca.crt"]).To(Equal(first["ca.crt"]))

		now = now.AddDate(4, 0, 0)
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		both := registered(ctx).Spec.CABundle
		Expect(string(both)).To(HaveSuffix(string(first["ca.crt"])))
		Expect(len(both)).To(BeNumerically(">", len(first["ca.crt"])))

		By("dropping the old one when it has ended")
		now = now.AddDate(1, 0, 0)
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		Expect(string(both)).To(HavePrefix(string(registered(ctx).Spec.CABundle)))
		Expect(secret(ctx, keeper.Authority).Data).NotTo(HaveKey("previous.crt"))
	})

	It("mends what others have changed", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(admin.Delete(ctx, secret(ctx, keeper.Serving[0].Secret))).To(Succeed())
		service := registered(ctx)
		service.Spec.CABundle = nil
		Expect(admin.Update(ctx, service)).To(Succeed())
		configuration := configured(ctx)
		configuration.Webhooks[1].ClientConfig.CABundle = nil
		Expect(admin.Update(ctx, configuration)).To(Succeed())
		authority := secret(ctx, keeper.Authority).Data
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		Expect(secret(ctx, keeper.Authority).Data).To(Equal(authority))

		By("beginning anew where the authority is gone")
		Expect(admin.Delete(ctx, secret(ctx, keeper.Authority))).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
	})

	It("keeps what else is said of webhooks", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		for _, webhook := range configured(ctx).Webhooks {
			Expect(webhook.ClientConfig.Service.Name).To(Equal("paddock-controller"))
			Expect(*webhook.SideEffects).To(Equal(admissionregistrationv1.SideEffectClassNone))
		}
	})

	It("hands a server its certificate from when there is one, and the next when it is replaced", func(ctx SpecContext) {
		source := &certificate.Source{
			Live: controller, Secret: client.ObjectKey{Namespace: operatorNamespace, Name: keeper.Serving[1].Secret}, Now: func() time.Time { return now },
		}
		handed := func() (leaf []byte, err error) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			go func() {
				_ = tls.Client(there, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // the server's error is what matters
			}()
			err = tls.Server(here, &tls.Config{SessionTicketsDisabled: true, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := source.GetCertificate(hello)
				if err == nil {
					leaf = pair.Leaf.Raw
				}
				return pair, err
			}}).HandshakeContext(ctx)
			return leaf, err
		}
		_, err := handed()
		Expect(err).To(MatchError(ContainSubstring("read Secret")))
		Expect(admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: keeper.Serving[1].Secret}})).To(Succeed())
		now = now.Add(time.Second)
		_, err = handed()
		Expect(err).To(MatchError(ContainSubstring("parse the certificate")))

		Expect(keeper.Keep(ctx)).To(Succeed())
		_, err = handed()
		Expect(err).To(MatchError(ContainSubstring("no certificate")), "who connects often is not asked for often")
		now = now.Add(time.Second)
		first, err := handed()
		Expect(err).NotTo(HaveOccurred())

		By("going on with what it has")
		now = now.AddDate(0, 0, 61)
		Expect(admin.Delete(ctx, secret(ctx, keeper.Serving[1].Secret))).To(Succeed())
		Expect(handed()).To(Equal(first))
		Expect(keeper.Keep(ctx)).To(Succeed())
		now = now.Add(time.Second)
		Expect(handed()).NotTo(Equal(first))
	})

	It("does without an APIService and without webhooks, and makes none", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, registered(ctx))).To(Succeed())
		Expect(admin.Delete(ctx, configured(ctx))).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(secret(ctx, keeper.Serving[0].Secret).Data).To(HaveLen(3))
		Expect(secret(ctx, keeper.Serving[1].Secret).Data).To(HaveLen(3))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: webhooks}, &admissionregistrationv1.ValidatingWebhookConfiguration{}))).To(BeTrue())
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: apiService}, &apiregistrationv1.APIService{}))).To(BeTrue())
	})
})
