package aggregated_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"

	"github.com/paddock-health/paddock/hack/dev/freeport"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// freeAddress returns an address on which no program listens.
func freeAddress() string {
	GinkgoHelper()
	address, err := freeport.Address()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// startAlone starts an API server that serves the aggregated API and nothing
// else, with the certificate of the one behind kube-apiserver.
func startAlone(ctx context.Context) (address string) {
	GinkgoHelper()
	address, health := freeAddress(), freeAddress()
	process, err := cluster.StartProgram(ctx, localcluster.Program{
		Name: "aggregated-alone",
		Path: filepath.Join("..", "..", "bin", "apiserver"),
		Args: []string{
			"--serve", "aggregated", "--kubeconfig", cluster.File("paddock-apiserver.kubeconfig"),
			"--public-url", paddock.PublicURL(), "--page-token-key-file", cluster.File("page.keys"),
			"--aggregated-address", address, "--health-address", health,
			"--aggregated-tls-cert-file", cluster.File("aggregated.crt"),
			"--aggregated-tls-key-file", cluster.File("aggregated.key"),
		},
		Ready: func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("readyz: %s", answer.Status)
			}
			return nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(process.Kill)
	return address
}

var _ = Describe("The aggregated API in a process of its own", Ordered, func() {
	var address string
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, readerRole)
		address = startAlone(ctx)
	})

	// get asks it for rex, past kube-apiserver.
	get := func(ctx context.Context, certificates []tls.Certificate, header map[string]string) response {
		GinkgoHelper()
		roots, err := cert.NewPool(cluster.File("aggregated.crt"))
		Expect(err).NotTo(HaveOccurred())
		transport := &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: "paddock-aggregated.paddock-system.svc", Certificates: certificates,
		}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+group+"/namespaces/demo/patients/rex", nil)
		Expect(err).NotTo(HaveOccurred())
		for name, value := range header {
			request.Header.Set(name, value)
		}
		return do(&http.Client{Transport: transport}, request)
	}

	It("believes the front proxy who the user is", func(ctx SpecContext) {
		proxy, err := tls.LoadX509KeyPair(cluster.FrontProxyClientCert(), cluster.FrontProxyClientKey())
		Expect(err).NotTo(HaveOccurred())
		as := func(user string) int {
			return get(ctx, []tls.Certificate{proxy}, map[string]string{"X-Remote-User": user}).status
		}
		Eventually(as).WithContext(ctx).WithArguments("reader").Should(Equal(http.StatusOK))
		Expect(as("nobody")).To(Equal(http.StatusForbidden))
	})

	It("believes nobody else", func(ctx SpecContext) {
		masters := map[string]string{"X-Remote-User": "reader", "X-Remote-Group": "system:masters"}
		anonymous := get(ctx, nil, masters)
		Expect(anonymous.status).To(Equal(http.StatusForbidden))
		Expect(string(anonymous.body)).To(ContainSubstring(`User \"system:anonymous\" cannot`))
		config, err := cluster.UserConfig("mallory")
		Expect(err).NotTo(HaveOccurred())
		own, err := tls.X509KeyPair(config.CertData, config.KeyData)
		Expect(err).NotTo(HaveOccurred())
		user := get(ctx, []tls.Certificate{own}, masters)
		Expect(user.status).To(Equal(http.StatusForbidden))
		Expect(string(user.body)).To(ContainSubstring(`User \"mallory\" cannot`))
		Expect(get(ctx, nil, map[string]string{"Authorization": "Bearer nonsense"}).status).To(Equal(http.StatusUnauthorized))
	})

	It("takes a token that the API server takes, and none made for a site", func(ctx SpecContext) {
		own, err := paddock.Token(ctx, "demo", "clerk", "https://kubernetes.default.svc.cluster.local", tokenLife)
		Expect(err).NotTo(HaveOccurred())
		with := func(token string) int {
			return get(ctx, nil, map[string]string{"Authorization": "Bearer " + token}).status
		}
		Eventually(with).WithContext(ctx).WithArguments(own).Should(Equal(http.StatusOK))
		Expect(with(token)).To(Equal(http.StatusUnauthorized))
	})
})
