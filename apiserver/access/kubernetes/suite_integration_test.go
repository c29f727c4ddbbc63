package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

func TestAccess(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(10 * time.Second) // for a busy machine
	RunSpecs(t, "Access by the API server")
}

const group = "r4.fhir.paddock.health"

var (
	control *localcluster.Cluster
	clients kubernetes.Interface
	site    = access.Tenant{Namespace: "clinic", Name: "oak"}
	lenient = access.Tenant{Namespace: "clinic", Name: "oak", APIServerAudience: true}
	hidden  = access.Tenant{Namespace: "clinic", Name: "oak", Hidden: true}
)

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	control, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return control.Stop() })
	clients, err = kubernetes.NewForConfig(control.Config())
	Expect(err).NotTo(HaveOccurred())
	_, err = clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clinic"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for account, rule := range map[string]rbacv1.PolicyRule{
		"reader":      {APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}},
		"one-reader":  {APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}, ResourceNames: []string{"rex"}},
		"site-reader": {APIGroups: []string{"paddock.health"}, Resources: []string{"sites"}, Verbs: []string{"get"}},
		"log-reader":  {APIGroups: []string{"paddock.health"}, Resources: []string{"*/deliveries"}, Verbs: []string{"list"}},
		"stranger":    {APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
	} {
		makeAccount(ctx, account, rule)
	}
}, NodeTimeout(5*time.Minute))

func makeAccount(ctx context.Context, name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: name, Namespace: "clinic"}
	_, err := clients.CoreV1().ServiceAccounts("clinic").Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().Roles("clinic").Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = clients.RbacV1().RoleBindings("clinic").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: "clinic"}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	awaitReview(ctx, "system:serviceaccount:clinic:"+name, rule, true)
}

// awaitReview waits until kube-apiserver knows whether a rule applies to a user in the namespace clinic: it
// watches the objects of RBAC, and may see a change later than the client that made it.
func awaitReview(ctx context.Context, user string, rule rbacv1.PolicyRule, allowed bool) {
	GinkgoHelper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: "clinic", Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
	Eventually(func() (bool, error) {
		answer, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}).WithContext(ctx).Should(Equal(allowed))
}

func tokenOf(ctx context.Context, account string, audiences ...string) string {
	GinkgoHelper()
	answer, err := clients.CoreV1().ServiceAccounts("clinic").CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Token
}

// newAccess returns an Access whose clock stands still.
func newAccess() *Access {
	GinkgoHelper()
	a, err := New(control.Config(), []schema.GroupResource{{Group: group, Resource: "patients"}, {Group: group, Resource: "persons"}})
	Expect(err).NotTo(HaveOccurred())
	a.now = newClock().now
	return a
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func get(name string) access.Action {
	return access.Action{Verb: "get", Group: group, Resource: "patients", Name: name}
}

func beInvalidToken() OmegaMatcher {
	return WithTransform(func(err error) string {
		var refused *access.TokenError
		if !errors.As(err, &refused) {
			return "no TokenError"
		}
		return refused.Code
	}, Equal("invalid_token"))
}

var _ = Describe("Authentication", func() {
	It("takes tokens made for the site", func(ctx SpecContext) {
		a := newAccess()
		for range 2 { // the second answer is remembered
			caller, err := a.Authenticate(ctx, &site, tokenOf(ctx, "reader", site.Audience()))
			Expect(err).NotTo(HaveOccurred())
			Expect(caller.Name).To(Equal("system:serviceaccount:clinic:reader"))
			Expect(caller.Groups).To(ContainElement("system:serviceaccounts:clinic"))
			Expect(caller.UID).NotTo(BeEmpty())
		}
	})

	It("takes tokens made for the API server only where the site says so", func(ctx SpecContext) {
		a := newAccess()
		token := tokenOf(ctx, "reader")
		_, err := a.Authenticate(ctx, &lenient, token)
		Expect(err).NotTo(HaveOccurred())
		_, err = a.Authenticate(ctx, &site, token)
		Expect(err).To(beInvalidToken())
		Expect(err).To(MatchError(ContainSubstring("paddock.health/clinic/oak")))
	})

	It("refuses what is no token, is changed, or has expired", func(ctx SpecContext) {
		a := newAccess()
		token := tokenOf(ctx, "reader", site.Audience())
		for _, wrong := range []string{"x", "a.b.c", "e30.e30.", token[:len(token)-6] + "AAAAAA", token + "x"} {
			_, err := a.Authenticate(ctx, &site, wrong)
			Expect(err).To(beInvalidToken(), wrong)
			_, err = a.Authenticate(ctx, nil, wrong)
			Expect(err).To(beInvalidToken(), "at no site: %s", wrong)
		}
		_, err := a.Authenticate(ctx, &site, token)
		Expect(err).NotTo(HaveOccurred())
		By("an answer that is remembered ends with the token")
		a.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		_, err = a.Authenticate(ctx, &site, token)
		Expect(err).To(beInvalidToken())
		Expect(err).To(MatchError(ContainSubstring("expired")))
	})

	It("knows no site that a token is not made for, where that is hidden or does not exist", func(ctx SpecContext) {
		a := newAccess()
		for _, account := range []string{"stranger", "reader"} {
			for _, audience := range []string{"elsewhere", "paddock.health/clinic/another"} {
				token := tokenOf(ctx, account, audience)
				_, atSite := a.Authenticate(ctx, &site, token)
				_, atHidden := a.Authenticate(ctx, &hidden, token)
				_, atNone := a.Authenticate(ctx, nil, token)
				Expect(atSite).To(beInvalidToken())
				Expect(atHidden).To(MatchError(access.ErrSiteHidden))
				Expect(atNone).To(Equal(atHidden))
			}
		}
		for _, wrong := range []string{"x", "e30.e30.", tokenOf(ctx, "reader", site.Audience()) + "x"} {
			_, atHidden := a.Authenticate(ctx, &hidden, wrong)
			_, atNone := a.Authenticate(ctx, nil, wrong)
			Expect(atHidden).To(beInvalidToken())
			Expect(atNone).To(Equal(atHidden))
		}
	})
})

var _ = Describe("Authorization", func() {
	caller := func(ctx context.Context, a *Access, account string) access.Caller {
		GinkgoHelper()
		found, err := a.Authenticate(ctx, &site, tokenOf(ctx, account, site.Audience()))
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	It("follows RBAC in the site's namespace", func(ctx SpecContext) {
		a := newAccess()
		reader := caller(ctx, a, "reader")
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(a.Authorize(ctx, reader, site, get("another"))).To(Succeed())
		var forbidden *access.ForbiddenError
		Expect(errors.As(a.Authorize(ctx, reader, site, access.Action{Verb: "delete", Group: group, Resource: "patients", Name: "rex"}), &forbidden)).To(BeTrue())
		Expect(forbidden.Error()).To(ContainSubstring("delete patients.r4.fhir.paddock.health"))
		Expect(a.Authorize(ctx, reader, access.Tenant{Namespace: "default", Name: "oak"}, get("rex"))).To(BeAssignableToTypeOf(forbidden))
	})
	It("knows rights on subresources", func(ctx SpecContext) {
		a := newAccess()
		reader := caller(ctx, a, "log-reader")
		list := access.Action{Verb: "list", Group: "paddock.health", Resource: "webhooks/deliveries", Name: "h"}
		Expect(a.Authorize(ctx, reader, site, list)).To(Succeed())
		list.Resource = "webhooks"
		Expect(a.Authorize(ctx, reader, site, list)).NotTo(Succeed())
	})
	It("knows rights on single records", func(ctx SpecContext) {
		a := newAccess()
		one := caller(ctx, a, "one-reader")
		Expect(a.Authorize(ctx, one, site, get("rex"))).To(Succeed())
		Expect(a.Authorize(ctx, one, site, get("another"))).NotTo(Succeed())
		Expect(a.Authorize(ctx, one, site, get(""))).NotTo(Succeed())
	})
})

var _ = Describe("While the API server is away", Serial, func() {
	It("remembered answers count, and nothing else", func(ctx SpecContext) {
		a := newAccess()
		known, unknown := tokenOf(ctx, "reader", site.Audience()), tokenOf(ctx, "one-reader", site.Audience())
		reader, err := a.Authenticate(ctx, &site, known)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		Expect(control.APIServer().Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(control.APIServer().Restart(ctx)).To(Succeed()) })
		_, err = a.Authenticate(ctx, &site, known)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(Succeed())
		_, err = a.Authenticate(ctx, &site, unknown)
		Expect(err).To(MatchError(access.ErrUnavailable))
		Expect(a.Authorize(ctx, reader, site, access.Action{Verb: "list", Group: group, Resource: "persons"})).To(MatchError(access.ErrUnavailable))
		_, atHidden := a.Authenticate(ctx, &hidden, unknown)
		_, atNone := a.Authenticate(ctx, nil, unknown)
		Expect(atHidden).To(MatchError(access.ErrUnavailable))
		Expect(atNone).To(Equal(atHidden))
	})

	It("rights that were cached for longer than ten seconds count for up to a minute", func(ctx SpecContext) {
		a, _, clock := watching(ctx)
		reader, err := a.Authenticate(ctx, &site, tokenOf(ctx, "reader", site.Audience()))
		Expect(err).NotTo(HaveOccurred())
		allowed := func() error { return a.Authorize(ctx, reader, site, get("rex")) }
		clock.advance(rightsTTL + time.Second) // the first list is past
		Expect(allowed()).To(Succeed())
		clock.advance(2 * rightsTTL)
		Expect(allowed()).To(Succeed())
		Expect(control.APIServer().Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(control.APIServer().Restart(ctx)).To(Succeed()) })
		Consistently(allowed).WithContext(ctx).WithTimeout(3 * time.Second).Should(Succeed())
		clock.advance(answerTTL)
		Expect(allowed()).To(MatchError(access.ErrUnavailable))
	}, SpecTimeout(time.Minute))

	It("or does not accept the credentials of this process, no caller is refused", func(ctx SpecContext) {
		config := rest.AnonymousClientConfig(control.Config())
		config.BearerToken = tokenOf(ctx, "reader", "elsewhere") // as good as one that has expired
		a, err := New(config, []schema.GroupResource{{Group: group, Resource: "patients"}})
		Expect(err).NotTo(HaveOccurred())
		for _, at := range []*access.Tenant{&site, &hidden, nil} {
			_, err = a.Authenticate(ctx, at, tokenOf(ctx, "reader", site.Audience()))
			Expect(err).To(MatchError(access.ErrUnavailable))
		}
		reader, err := newAccess().Authenticate(ctx, &site, tokenOf(ctx, "reader", site.Audience()))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Authorize(ctx, reader, site, get("rex"))).To(MatchError(access.ErrUnavailable))
	})

	It("a right that it has loaded since it refused is no refusal", func(ctx SpecContext) {
		config := rest.CopyConfig(control.Config())
		grant := sync.OnceFunc(func() {
			makeAccount(ctx, "late", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"patients"}, Verbs: []string{"get"}})
		})
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/readyz" {
					defer GinkgoRecover()
					grant()
				}
				return next.RoundTrip(r)
			})
		})
		a, err := New(config, []schema.GroupResource{{Group: group, Resource: "patients"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Authorize(ctx, access.Caller{Name: "system:serviceaccount:clinic:late"}, site, get(""))).To(Succeed())
	}, SpecTimeout(time.Minute))

	It("a right that it has not loaded yet after a start is no refusal", func(ctx SpecContext) {
		reader, err := newAccess().Authenticate(ctx, &site, tokenOf(ctx, "reader", site.Audience()))
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			Expect(control.APIServer().Kill()).To(Succeed())
			restarted := make(chan error)
			go func() { restarted <- control.APIServer().Restart(ctx) }()
			allowed := func() error { return newAccess().Authorize(ctx, reader, site, get("rex")) }
			for err := allowed(); err != nil; err = allowed() {
				Expect(err).To(MatchError(access.ErrUnavailable))
			}
			Expect(<-restarted).To(Succeed())
		}
	}, SpecTimeout(5*time.Minute))
})
