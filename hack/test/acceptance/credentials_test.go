package acceptance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	operatorNamespace    = "paddock-system"
	connectionsNamespace = "paddock-connections"
	webhooksNamespace    = "paddock-webhooks"
	controllerAccount    = "paddock-controller"
)

// The specs act with the credentials of an API server that an attacker has taken over.
var _ = Describe("The credentials of an API server", func() {
	var apiServer kubernetes.Interface

	BeforeEach(func() {
		config, err := cluster.UserConfig("system:serviceaccount:"+operatorNamespace+":paddock-apiserver",
			"system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace, "system:authenticated")
		Expect(err).NotTo(HaveOccurred())
		apiServer, err = kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
	})

	tokenSecret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: controllerAccount},
			},
			Type: corev1.SecretTypeServiceAccountToken,
		}
	}
	beForbidden := MatchError(apierrors.IsForbidden, "an error of status 403")

	DescribeTable("create no token of the controller's account", func(ctx SpecContext, namespace string) {
		_, err := apiServer.CoreV1().Secrets(namespace).Create(ctx, tokenSecret(namespace, "stolen"), metav1.CreateOptions{})
		Expect(err).To(beForbidden)
	},
		Entry("in the operator's namespace", operatorNamespace),
		Entry("in the namespace of the connections", connectionsNamespace),
		Entry("in the namespace of webhooks' Secrets", webhooksNamespace),
		Entry("in a Site's namespace", "demo"),
		Entry("in a namespace without a Site", "default"),
	)

	DescribeTable("create no Secret of a webhook where no Site is", func(ctx SpecContext, namespace string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "webhook"}, Type: "paddock.health/webhook"}
		_, err := apiServer.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).To(beForbidden)
	},
		Entry("in the operator's namespace", operatorNamespace),
		Entry("in the namespace of the connections", connectionsNamespace),
		Entry("in the namespace of webhooks' Secrets", webhooksNamespace),
	)

	It("read no Secret of the operator's namespace, however a token got there", func(ctx SpecContext) {
		admin, err := kubernetes.NewForConfig(cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		// kube-apiserver checks the account; kube-controller-manager, which would add the token, does not run here.
		planted := tokenSecret(operatorNamespace, "planted")
		planted.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte("a token")}
		_, err = admin.CoreV1().Secrets(operatorNamespace).Create(ctx, planted, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.CoreV1().Secrets(operatorNamespace).Delete(ctx, "planted", metav1.DeleteOptions{})).To(Succeed())
		})
		for _, namespace := range []string{operatorNamespace, webhooksNamespace, "demo", "demo-postgres", "kube-system", metav1.NamespaceAll} {
			secrets := apiServer.CoreV1().Secrets(namespace)
			_, err := secrets.List(ctx, metav1.ListOptions{})
			Expect(err).To(beForbidden, "list %q", namespace)
			_, err = secrets.Watch(ctx, metav1.ListOptions{})
			Expect(err).To(beForbidden, "watch %q", namespace)
		}
		all, err := admin.CoreV1().Secrets(operatorNamespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(len(all.Items)).To(BeNumerically(">", 1))
		for _, secret := range all.Items {
			_, err := apiServer.CoreV1().Secrets(operatorNamespace).Get(ctx, secret.Name, metav1.GetOptions{})
			Expect(err).To(beForbidden, "get %s", secret.Name)
			_, err = apiServer.CoreV1().Secrets(operatorNamespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + secret.Name})
			Expect(err).To(beForbidden, "list %s", secret.Name)
		}
		_, err = apiServer.CoreV1().ServiceAccounts(operatorNamespace).CreateToken(ctx, controllerAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).To(beForbidden)
	}, NodeTimeout(3*time.Minute))

	It("read the connections to databases", func(ctx SpecContext) {
		found, err := apiServer.CoreV1().Secrets(connectionsNamespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(names(found.Items)).To(ContainElement("site-demo-postgres"))
		Expect(found.Items).To(HaveEach(HaveField("Type", corev1.SecretType("paddock.health/dsn"))))
	})
})

func names(secrets []corev1.Secret) []string {
	all := make([]string, len(secrets))
	for i, secret := range secrets {
		all[i] = secret.Name
	}
	return all
}
