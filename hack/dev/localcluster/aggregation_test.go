package localcluster_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/ptr"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// startWhoAmI serves TLS for the given name to clients that the front-proxy authority
// vouches for, and tells them the user they name.
func startWhoAmI(name, frontProxyCAFile string) (port int32, ca []byte) {
	GinkgoHelper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())
	frontProxy, err := cert.NewPool(frontProxyCAFile)
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("X-Remote-User"))
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    frontProxy,
	}
	server.StartTLS()
	DeferCleanup(server.Close)
	return int32(server.Listener.Addr().(*net.TCPAddr).Port), certificate
}

var _ = Describe("a control plane with an aggregated API server on this machine", func() {
	It("proxies requests to it and vouches for the user", func(ctx SpecContext) {
		cluster := start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true})
		port, ca := startWhoAmI("whoami.default.svc", cluster.FrontProxyCAFile())
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "whoami"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}
		client := clientFor(cluster.Config())
		_, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		registration, err := aggregator.NewForConfig(cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		_, err = registration.ApiregistrationV1().APIServices().Create(ctx, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1.whoami.paddock.health"},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: "whoami.paddock.health", Version: "v1",
				GroupPriorityMinimum: 1000, VersionPriority: 10,
				CABundle: ca,
				Service: &apiregistrationv1.ServiceReference{
					Namespace: metav1.NamespaceDefault, Name: service.Name, Port: ptr.To(port),
				},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		Eventually(ctx, func() ([]byte, error) {
			return client.CoreV1().RESTClient().Get().AbsPath("/apis/whoami.paddock.health/v1").DoRaw(ctx)
		}).Should(BeEquivalentTo("kubernetes-admin"))
	}, limit)
})
