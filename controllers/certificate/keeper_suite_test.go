package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
	// isServed checks that what is served is trusted by kube-apiserver.
	isServed := func(ctx context.Context) {
		GinkgoHelper()
		data := secret(ctx, keeper.Secret).Data
		pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		for _, bundle := range [][]byte{registered(ctx).Spec.CABundle, data["ca.crt"]} {
			roots := x509.NewCertPool()
			Expect(roots.AppendCertsFromPEM(bundle)).To(BeTrue())
			_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
			Expect(err).NotTo(HaveOccurred())
		}
	}

	BeforeEach(func(ctx SpecContext) {
		now = time.Now()
		keeper = &certificate.Keeper{
			Client: controller, Live: controller, Namespace: operatorNamespace,
			Secret: "paddock-apiserver-tls", Authority: "paddock-authority",
			DNSNames: []string{host}, APIService: apiService, Now: func() time.Time { return now },
		}
		service := &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: apiService},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: "r4.fhir.paddock.health", Version: "v1alpha1", GroupPriorityMinimum: 1000, VersionPriority: 10,
				Service: &apiregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: "paddock-aggregated", Port: ptr.To[int32](443)},
			},
		}
		Expect(admin.Create(ctx, service)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, service))).To(Succeed())
			Expect(admin.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(operatorNamespace))).To(Succeed())
		})
	})

	It("makes all of it, and then writes nothing", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		before := []string{secret(ctx, keeper.Secret).ResourceVersion, secret(ctx, keeper.Authority).ResourceVersion, registered(ctx).ResourceVersion}
		Expect(secret(ctx, keeper.Secret).Data).To(HaveLen(3), "the authority's key is nowhere else")
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect([]string{secret(ctx, keeper.Secret).ResourceVersion, secret(ctx, keeper.Authority).ResourceVersion, registered(ctx).ResourceVersion}).To(Equal(before))
	})

	It("fills Secrets that a chart has made, and keeps their labels", func(ctx SpecContext) {
		for _, name := range []string{keeper.Secret, keeper.Authority} {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "paddock"}}}
			Expect(admin.Create(ctx, s)).To(Succeed())
		}
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		Expect(secret(ctx, keeper.Secret).Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "paddock"))
	})

	It("replaces certificates in time, and makes an authority known before it signs", func(ctx SpecContext) {
		Expect(keeper.Keep(ctx)).To(Succeed())
		first := secret(ctx, keeper.Secret).Data
		now = now.AddDate(0, 0, 61)
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		second := secret(ctx, keeper.Secret).Data
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
		Expect(admin.Delete(ctx, secret(ctx, keeper.Secret))).To(Succeed())
		service := registered(ctx)
		service.Spec.CABundle = nil
		Expect(admin.Update(ctx, service)).To(Succeed())
		authority := secret(ctx, keeper.Authority).Data
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
		Expect(secret(ctx, keeper.Authority).Data).To(Equal(authority))

		By("beginning anew where the authority is gone")
		Expect(admin.Delete(ctx, secret(ctx, keeper.Authority))).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		isServed(ctx)
	})

	It("does without an APIService, and makes none", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, registered(ctx))).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(secret(ctx, keeper.Secret).Data).To(HaveLen(3))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: apiService}, &apiregistrationv1.APIService{}))).To(BeTrue())
	})
})
