package chart_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/controllers/certificate"
	"github.com/paddock-health/paddock/controllers/pagetoken"
)

var _ = Describe("The chart", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		install(ctx, "ingress.hosts={fhir.example.org}", "facade.autoscaling.enabled=true", "facade.tls.enabled=true", "logLevel=debug")
	}, NodeTimeout(3*time.Minute))

	It("makes pods that the restricted policy admits", func(ctx SpecContext) {
		expectAdmitted(ctx, admin, deployments(ctx)...)
		Expect(admin.Create(ctx, testPod(ctx, "facade.tls.enabled=true"), client.DryRunAll)).To(Succeed())
		privileged := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "root"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "root", Image: "root"}}},
		}
		Expect(apierrors.IsForbidden(admin.Create(ctx, privileged, client.DryRunAll))).To(BeTrue(), "the policy is not enforced")
	}, NodeTimeout(3*time.Minute))

	It("passes flags that the programs have", func(ctx SpecContext) {
		programs := map[string]string{"paddock-controller": "controller", "paddock-facade": "apiserver", "paddock-aggregated": "apiserver", "paddock-delivery": "apiserver"}
		for _, deployment := range deployments(ctx) {
			container := deployment.Spec.Template.Spec.Containers[0]
			args := append(container.Args, "--version")
			Expect(programs).To(HaveKey(deployment.Name))
			out, err := exec.CommandContext(ctx, filepath.Join(bin, programs[deployment.Name]), args...).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s %v: %s", deployment.Name, args, out)
		}
	}, NodeTimeout(3*time.Minute))

	It("has the controller make certificates that kube-apiserver trusts, and the key of page tokens", func(ctx SpecContext) {
		Expect(keeper(ctx).Keep(ctx)).To(Succeed())
		for _, serving := range []struct {
			secret   string
			services []string
			bundle   []byte
		}{
			{"paddock-apiserver-tls", []string{"paddock-aggregated", "paddock-facade"}, apiService(ctx).Spec.CABundle},
			{"paddock-controller-tls", []string{webhooks(ctx).Webhooks[0].ClientConfig.Service.Name}, webhooks(ctx).Webhooks[0].ClientConfig.CABundle},
		} {
			data := secret(ctx, serving.secret).Data
			pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
			Expect(err).NotTo(HaveOccurred())
			authorities := x509.NewCertPool()
			Expect(authorities.AppendCertsFromPEM(serving.bundle)).To(BeTrue())
			for _, service := range serving.services {
				_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, DNSName: service + "." + namespace + ".svc"})
				Expect(err).NotTo(HaveOccurred())
			}
		}
		Expect(secret(ctx, pageTokenSecret).Data).To(BeEmpty(), "the chart leaves the key to the controller")
		Expect(pageTokenKeeper().Keep(ctx)).To(Succeed())
		key, err := base64.StdEncoding.DecodeString(string(secret(ctx, pageTokenSecret).Data["key"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(key).To(HaveLen(32))
	}, NodeTimeout(3*time.Minute))

	It("gives its service accounts these rights and no more", func(ctx SpecContext) {
		for _, account := range []string{"paddock-controller", "paddock-apiserver", "paddock-delivery"} {
			for _, where := range []string{namespace, "paddock-connections", "paddock-webhooks", "default"} {
				expectGolden(ctx, account, where, account+"-in-"+where+".txt")
			}
		}
	}, NodeTimeout(3*time.Minute))

	describeBackupRights()

	It("gives the controller Secrets where their owners bound a role, if that is wanted", func(ctx SpecContext) {
		install(ctx, "rbac.secrets=Namespaced")
		run(ctx, "kubectl", "create", "namespace", "clinic-bound")
		run(ctx, "kubectl", "create", "rolebinding", "paddock-site-secrets", "--namespace", "clinic-bound",
			"--clusterrole=paddock-site-secrets", "--serviceaccount="+namespace+":paddock-controller")
		for where, want := range map[string][]string{
			"default":      {},
			"clinic-bound": {"secrets [] [] [get create]", "secrets [] [paddock-postgres] [delete]", "secrets [] [paddock-postgres-b] [delete]"},
		} {
			Eventually(func() []string {
				return secretRights(run(ctx, "kubectl", "auth", "can-i", "--list", "--namespace", where,
					"--as", "system:serviceaccount:"+namespace+":paddock-controller", "--as-group", "system:serviceaccounts", "--as-group", "system:authenticated"))
			}).WithTimeout(learns).Should(ConsistOf(want))
		}
		install(ctx, "rbac.secrets=Cluster")
	}, NodeTimeout(3*time.Minute))

	It("gives no right by a wildcard", func(ctx SpecContext) {
		var roles rbacv1.RoleList
		var clusterRoles rbacv1.ClusterRoleList
		ours := client.MatchingLabels{"app.kubernetes.io/part-of": "paddock"}
		Expect(admin.List(ctx, &roles, ours)).To(Succeed())
		Expect(admin.List(ctx, &clusterRoles, ours)).To(Succeed())
		Expect(roles.Items).To(HaveLen(7))
		Expect(clusterRoles.Items).To(HaveLen(11))
		var rules []rbacv1.PolicyRule
		for _, role := range roles.Items {
			rules = append(rules, role.Rules...)
		}
		for _, role := range clusterRoles.Items {
			rules = append(rules, role.Rules...)
		}
		for _, rule := range rules {
			for _, part := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs) {
				Expect(part).NotTo(ContainSubstring("*"), "%v", rule)
			}
		}
	}, NodeTimeout(3*time.Minute))

	It("keeps certificate and key when it is upgraded", func(ctx SpecContext) {
		serving, key, authority := secret(ctx, "paddock-apiserver-tls").Data, secret(ctx, pageTokenSecret).Data, apiService(ctx).Spec.CABundle
		webhook := secret(ctx, "paddock-controller-tls").Data
		install(ctx, "controller.replicas=3")
		Expect(secret(ctx, "paddock-apiserver-tls").Data).To(Equal(serving))
		Expect(secret(ctx, pageTokenSecret).Data).To(Equal(key))
		Expect(apiService(ctx).Spec.CABundle).To(Equal(authority))
		Expect(secret(ctx, "paddock-controller-tls").Data).To(Equal(webhook))
		Expect(webhooks(ctx).Webhooks[0].ClientConfig.CABundle).To(Equal(authority))
		run(ctx, "helm", "rollback", release, "1", "--namespace", namespace)
		Expect(secret(ctx, pageTokenSecret).Data).To(Equal(key))
	}, NodeTimeout(3*time.Minute))

	describeUpgrade()

	It("leaves the types and the keys when it is uninstalled", func(ctx SpecContext) {
		before := run(ctx, "kubectl", "get", "crd", "--output", "name")
		Expect(before).To(ContainSubstring("sites.paddock.health"))
		keys := secret(ctx, pageTokenSecret).Data
		Expect(keys).To(HaveKey("feed"))
		run(ctx, "helm", "uninstall", release, "--namespace", namespace)
		Expect(run(ctx, "kubectl", "get", "crd", "--output", "name")).To(Equal(before))
		Expect(deployments(ctx)).To(BeEmpty())
		Expect(run(ctx, "kubectl", "get", "secrets", "--namespace", namespace, "--output", "name")).To(Equal("secret/" + pageTokenSecret + "\n"))
		install(ctx, "logLevel=info")
		Expect(secret(ctx, pageTokenSecret).Data).To(Equal(keys))
		Expect(deployments(ctx)).To(HaveLen(4))
	}, NodeTimeout(3*time.Minute))

	describeGitOps()
})

func deployments(ctx context.Context) []*appsv1.Deployment {
	GinkgoHelper()
	var list appsv1.DeploymentList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var all []*appsv1.Deployment
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// keeper does what the controller would do as the Deployment starts it.
func keeper(ctx context.Context) *certificate.Keeper {
	GinkgoHelper()
	k := &certificate.Keeper{
		Client: admin, Live: admin, Namespace: namespace, Authority: "paddock-authority", Now: time.Now,
		Serving: []certificate.Serving{
			{Secret: "paddock-apiserver-tls", APIService: apiService(ctx).Name},
			{Secret: "paddock-controller-tls", ValidatingWebhooks: webhooks(ctx).Name},
		},
	}
	for _, deployment := range deployments(ctx) {
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			if names, ok := strings.CutPrefix(arg, "--certificate-names="); ok {
				k.Serving[0].DNSNames = strings.Split(names, ",")
			}
			if names, ok := strings.CutPrefix(arg, "--webhook-certificate-names="); ok {
				k.Serving[1].DNSNames = strings.Split(names, ",")
			}
		}
	}
	for _, serving := range k.Serving {
		Expect(serving.DNSNames).NotTo(BeEmpty())
	}
	return k
}

// pageTokenSecret is the Secret with the key of page tokens.
const pageTokenSecret = "paddock-page-token-key"

// pageTokenKeeper does what a controller would do that has just become the leader.
func pageTokenKeeper() *pagetoken.Keeper {
	return &pagetoken.Keeper{Client: admin, Live: admin, Secret: client.ObjectKey{Namespace: namespace, Name: pageTokenSecret}, Now: time.Now}
}

func webhooks(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	found := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: "paddock-controller"}, found)).To(Succeed())
	return found
}

func secret(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	found := &corev1.Secret{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)).To(Succeed())
	return found
}

func apiService(ctx context.Context) *apiregistrationv1.APIService {
	GinkgoHelper()
	found := &apiregistrationv1.APIService{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: "v1alpha1.r4.fhir.paddock.health"}, found)).To(Succeed())
	return found
}

// secretRights are the lines about Secrets among an account's rights.
func secretRights(rights string) []string {
	var found []string
	for line := range strings.Lines(rights) {
		if strings.HasPrefix(line, "secrets ") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return found
}

// normalizeRights returns the output of `kubectl auth can-i --list` without padding, with lines and verbs sorted. Their order
// is that in which kube-apiserver finds the bindings, which changes.
func normalizeRights(output string) string {
	header, rest, _ := strings.Cut(output, "\n")
	var lines []string
	for line := range strings.Lines(rest) {
		line = strings.Join(strings.Fields(line), " ")
		begin := strings.LastIndex(line, "[") + 1
		verbs := strings.Fields(strings.TrimSuffix(line[begin:], "]"))
		slices.Sort(verbs)
		lines = append(lines, line[:begin]+strings.Join(verbs, " ")+"]")
	}
	slices.Sort(lines)
	return strings.Join(strings.Fields(header), " ") + "\n" + strings.Join(lines, "\n") + "\n"
}

// expectGolden compares the rights of an account in a namespace with a file of testdata, which UPDATE_GOLDEN=1
// writes. kube-apiserver learns of a binding a moment after it was created.
func expectGolden(ctx context.Context, account, where, name string) {
	GinkgoHelper()
	rights := func() string {
		return normalizeRights(run(ctx, "kubectl", "auth", "can-i", "--list", "--namespace", where,
			"--as", "system:serviceaccount:"+namespace+":"+account, "--as-group", "system:serviceaccounts", "--as-group", "system:authenticated"))
	}
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		Expect(os.WriteFile(path, []byte(rights()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Eventually(rights).WithTimeout(learns).Should(Equal(string(want)), "%s is not what it was; UPDATE_GOLDEN=1 takes it as right", path)
}
