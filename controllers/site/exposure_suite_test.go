package site_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// allowed is what the operator lets Sites choose from.
var allowed = exposure.Options{
	Namespace: operatorNamespace, Port: 80, Hosts: []string{"records.example.com", "*.clinics.example.org"},
	Scheme: "https", IngressClass: "public", TLSSecret: "clinics-tls",
	Annotations: map[string]string{"example.org/body-size": "4m"},
	Gateways:    []types.NamespacedName{{Namespace: "infra", Name: "public"}},
}

func ingressTo(host v1alpha1.Hostname) *v1alpha1.Exposure {
	return &v1alpha1.Exposure{Ingress: &v1alpha1.IngressExposure{Host: host}}
}

func routeBy(gateway string, hostnames ...v1alpha1.Hostname) *v1alpha1.Exposure {
	return &v1alpha1.Exposure{HTTPRoute: &v1alpha1.HTTPRouteExposure{
		ParentRefs: []v1alpha1.GatewayReference{{Namespace: "infra", Name: gateway, SectionName: "https"}}, Hostnames: hostnames,
	}}
}

func createExposed(ctx context.Context, siteID string, e *v1alpha1.Exposure) *v1alpha1.Site {
	GinkgoHelper()
	s := newSite(newNamespace(ctx), "oak", siteID, v1alpha1.DeletionRetain)
	s.Spec.Exposure = e
	Expect(admin.Create(ctx, s)).To(Succeed())
	return s
}

func expose(ctx context.Context, s *v1alpha1.Site, e *v1alpha1.Exposure) {
	GinkgoHelper()
	update(ctx, s.Namespace, s.Name, func(s *v1alpha1.Site) { s.Spec.Exposure = e })
}

// address tells the status and the reason of Exposed, and the address that the status shows.
func address(s *v1alpha1.Site) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		exposed, err := condition(s, v1alpha1.ConditionExposed)(ctx)
		if err != nil {
			return "", err
		}
		now := &v1alpha1.Site{}
		err = admin.Get(ctx, client.ObjectKeyFromObject(s), now)
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionExposed); c != nil && c.ObservedGeneration != now.Generation {
			exposed = "old " + exposed
		}
		return exposed + " " + now.Status.URL, err
	}
}

func expectAddress(ctx context.Context, s *v1alpha1.Site, want string) {
	GinkgoHelper()
	Eventually(address(s)).WithContext(ctx).Should(Equal(want))
}

// lookUp finds an object; nil if there is none.
func lookUp(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) == nil && err != nil || meta.IsNoMatchError(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return object
}

var ingressKind = networkingv1.SchemeGroupVersion.WithKind("Ingress")

func ingressOf(ctx context.Context, s *v1alpha1.Site) *unstructured.Unstructured {
	return lookUp(ctx, ingressKind, operatorNamespace, "site-"+s.Namespace)
}

func grantOf(ctx context.Context, s *v1alpha1.Site) *unstructured.Unstructured {
	return lookUp(ctx, exposure.GrantKind, operatorNamespace, "site-"+s.Namespace)
}

func routeOf(ctx context.Context, s *v1alpha1.Site) *unstructured.Unstructured {
	return lookUp(ctx, exposure.RouteKind, s.Namespace, exposure.RouteName)
}

var _ = Describe("An address by Ingress", func() {
	It("is led to the site as the operator set it, and withdrawn again", func(ctx SpecContext) {
		startController(ctx)
		s := createExposed(ctx, "exposed", ingressTo("oak.clinics.example.org"))
		expectAddress(ctx, s, "True Exposed https://oak.clinics.example.org/site/exposed")
		expectReady(ctx, s)
		ingress := get[networkingv1.Ingress](ctx, operatorNamespace, "site-"+s.Namespace)
		Expect(ingress.Spec.IngressClassName).To(HaveValue(Equal("public")))
		Expect(ingress.Spec.TLS).To(ConsistOf(networkingv1.IngressTLS{Hosts: []string{"oak.clinics.example.org"}, SecretName: "clinics-tls"}))
		Expect(ingress.Annotations).To(HaveKeyWithValue("example.org/body-size", "4m"))
		Expect(ingress.Spec.Rules).To(HaveLen(1))
		Expect(ingress.Spec.Rules[0].Host).To(Equal("oak.clinics.example.org"))
		Expect(ingress.Spec.Rules[0].HTTP.Paths).To(HaveLen(1))
		path := ingress.Spec.Rules[0].HTTP.Paths[0]
		Expect(path.Path).To(Equal("/site/exposed"))
		Expect(path.PathType).To(HaveValue(Equal(networkingv1.PathTypePrefix)))
		Expect(path.Backend.Service.Name).To(Equal("paddock-facade"))

		By("repairing what drifts")
		ingress.Spec.Rules[0].HTTP.Paths[0].Path = "/"
		Expect(admin.Update(ctx, ingress)).To(Succeed())
		Eventually(func(ctx context.Context) string {
			return get[networkingv1.Ingress](ctx, operatorNamespace, ingress.Name).Spec.Rules[0].HTTP.Paths[0].Path
		}).WithContext(ctx).Should(Equal("/site/exposed"))
		deleted := get[networkingv1.Ingress](ctx, operatorNamespace, ingress.Name)
		Expect(admin.Delete(ctx, deleted)).To(Succeed())
		Eventually(func(ctx context.Context) types.UID {
			if now := ingressOf(ctx, s); now != nil {
				return now.GetUID()
			}
			return deleted.UID
		}).WithContext(ctx).ShouldNot(Equal(deleted.UID))

		By("changing the host")
		expose(ctx, s, ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/exposed")
		Expect(get[networkingv1.Ingress](ctx, operatorNamespace, ingress.Name).Spec.Rules[0].Host).To(Equal("records.example.com"))

		By("asking for none any more")
		expose(ctx, s, nil)
		expectAddress(ctx, s, "none "+publicURL+"/site/exposed")
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())
	})

	It("comes when the policy that refused it is gone", func(ctx SpecContext) {
		startController(ctx)
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "not-late"}}
		policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{ingressKind.Group}, APIVersions: []string{ingressKind.Version}, Resources: []string{"ingresses"}},
			},
		}}}
		policy.Spec.Validations = []admissionv1.Validation{{Expression: "!object.spec.rules.exists(r, r.host == 'late.clinics.example.org')", Message: "not this host"}}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, policy)).To(Succeed()) })
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
		binding.Spec.PolicyName, binding.Spec.ValidationActions = policy.Name, []admissionv1.ValidationAction{admissionv1.Deny}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		probe := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "probe"}}
		probe.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "probe", Port: networkingv1.ServiceBackendPort{Number: 80}}}
		probe.Spec.Rules = []networkingv1.IngressRule{{Host: "late.clinics.example.org"}}
		Eventually(func() error { return admin.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(MatchError(apierrors.IsInvalid, "a refusal"))
		s := createExposed(ctx, "exposed-late", ingressTo("late.clinics.example.org"))
		Eventually(condition(s, v1alpha1.ConditionExposed)).WithContext(ctx).Should(Equal("False Refused"))
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Eventually(condition(s, v1alpha1.ConditionExposed)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("True Exposed"))
	})

	It("is not to be had under a host that the operator does not allow", func(ctx SpecContext) {
		startController(ctx)
		for siteID, host := range map[string]v1alpha1.Hostname{
			"foreign-host": "records.example.net", "bare-suffix": "clinics.example.org", "two-labels": "a.b.clinics.example.org",
			"longer-suffix": "oak.clinics.example.org.example.net", "glued-suffix": "oak.evilclinics.example.org",
		} {
			s := createExposed(ctx, siteID, ingressTo(host))
			expectAddress(ctx, s, "False HostNotAllowed "+publicURL+"/site/"+siteID)
			Expect(condition(s, v1alpha1.ConditionReady)(ctx)).To(Equal("False HostNotAllowed"))
			Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True HostNotAllowed"))
			Expect(condition(s, v1alpha1.ConditionStorageReady)(ctx)).To(Equal("True ClusterStorage"), "the site is served all the same")
			Expect(ingressOf(ctx, s)).To(BeNil())
		}

		By("taking away what was allowed before")
		s := createExposed(ctx, "one-day", ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/one-day")
		expose(ctx, s, ingressTo("records.example.net"))
		expectAddress(ctx, s, "False HostNotAllowed "+publicURL+"/site/one-day")
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())
	})

	It("is no way to a path of another site, whoever shares the host", func(ctx SpecContext) {
		startController(ctx)
		first := createExposed(ctx, "shared-a", ingressTo("records.example.com"))
		second := createExposed(ctx, "shared-b", ingressTo("records.example.com"))
		expectAddress(ctx, first, "True Exposed https://records.example.com/site/shared-a")
		expectAddress(ctx, second, "True Exposed https://records.example.com/site/shared-b")

		thief := createExposed(ctx, "shared-a", ingressTo("records.example.com"))
		expectRefused(ctx, thief, v1alpha1.ReasonSiteIDTaken)
		expectAddress(ctx, thief, "False NotAccepted ")
		Expect(ingressOf(ctx, thief)).To(BeNil())

		By("nor to the address of the Site whose namespace it is in")
		neighbour := newSite(first.Namespace, "elm", "shared-c", v1alpha1.DeletionRetain)
		neighbour.Spec.Exposure = ingressTo("oak.clinics.example.org")
		Expect(admin.Create(ctx, neighbour)).To(Succeed())
		expectRefused(ctx, neighbour, v1alpha1.ReasonNamespaceOccupied)
		expose(ctx, neighbour, nil)
		expectAddress(ctx, neighbour, "none ")
		Expect(get[networkingv1.Ingress](ctx, operatorNamespace, "site-"+first.Namespace).Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/site/shared-a"))
	})

	It("goes with the Site, also when the controller learns of it later", func(ctx SpecContext) {
		stop := startController(ctx)
		s := createExposed(ctx, "moving-out", ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/moving-out")
		deleteAndWait(ctx, s)
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())

		s = createExposed(ctx, "left", ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/left")
		stop()
		deleteAndWait(ctx, s)
		Expect(ingressOf(ctx, s)).NotTo(BeNil())
		stop = startController(ctx)
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())

		By("or with its claim")
		s = createExposed(ctx, "handed-over", ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/handed-over")
		claim := get[v1alpha1.SiteClaim](ctx, "", "handed-over")
		claim.Spec.SiteRef = v1alpha1.SiteReference{Namespace: "another", Name: "oak", UID: "other"}
		Expect(admin.Update(ctx, claim)).To(Succeed())
		expectAddress(ctx, s, "False NotAccepted ")
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())
		stop()
	})

	It("follows the operator's settings", func(ctx SpecContext) {
		stop := startController(ctx)
		s := createExposed(ctx, "resettled", ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/resettled")
		stop()
		before := allowed
		DeferCleanup(func() { allowed = before })
		allowed.IngressClass, allowed.TLSSecret, allowed.Annotations, allowed.Scheme = "", "", nil, "http"
		startController(ctx)
		expectAddress(ctx, s, "True Exposed http://records.example.com/site/resettled")
		Eventually(func(g Gomega, ctx context.Context) {
			ingress := get[networkingv1.Ingress](ctx, operatorNamespace, "site-"+s.Namespace)
			g.Expect(ingress.Spec.IngressClassName).To(BeNil())
			g.Expect(ingress.Spec.TLS).To(BeEmpty())
			g.Expect(ingress.Annotations).NotTo(HaveKey("example.org/body-size"))
		}).WithContext(ctx).Should(Succeed())
	})
})

// No gateway runs here: what its controller would write, the spec writes.
var _ = Describe("An address by HTTPRoute", Ordered, func() {
	It("needs the Gateway API", func(ctx SpecContext) {
		startController(ctx)
		s := createExposed(ctx, "routed-early", routeBy("public", "oak.example.org"))
		expectAddress(ctx, s, "False GatewayAPIMissing "+publicURL+"/site/routed-early")
		Expect(condition(s, v1alpha1.ConditionStalled)(ctx)).To(Equal("True GatewayAPIMissing"))
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "oak", "unrouted"))

		By("noticing that it was installed")
		installGatewayAPI(ctx)
		touch(ctx, s) // instead of the next look
		expectAddress(ctx, s, "False RoutePending https://oak.example.org/site/routed-early")
		Expect(condition(s, v1alpha1.ConditionReconciling)(ctx)).To(Equal("True RoutePending"))
	})

	It("is led to the site where the Gateways take it", func(ctx SpecContext) {
		installGatewayAPI(ctx)
		startController(ctx)
		s := createExposed(ctx, "routed", routeBy("public", "oak.example.org", "oak.example.com"))
		expectAddress(ctx, s, "False RoutePending https://oak.example.org/site/routed")
		route, grant := routeOf(ctx, s), grantOf(ctx, s)
		Expect(route).NotTo(BeNil())
		Expect(metav1.IsControlledBy(route, s)).To(BeTrue())
		Expect(grant).NotTo(BeNil())
		Expect(grant.Object["spec"]).To(Equal(map[string]any{
			"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": s.Namespace}},
			"to":   []any{map[string]any{"group": "", "kind": "Service", "name": "paddock-facade"}},
		}))

		By("a Gateway that refuses")
		judge(ctx, s, "False", "NotAllowedByListeners")
		expectAddress(ctx, s, "False RouteNotAccepted https://oak.example.org/site/routed")
		Expect(condition(s, v1alpha1.ConditionReady)(ctx)).To(Equal("False RouteNotAccepted"))

		By("and takes it")
		judge(ctx, s, "True", "Accepted")
		expectAddress(ctx, s, "True Exposed https://oak.example.org/site/routed")
		expectReady(ctx, s)

		By("writing nothing while nothing changes")
		begin := time.Now()
		touch(ctx, s)
		expectReady(ctx, createSite(ctx, newNamespace(ctx), "elm", "routed-witness")) // reconciled after that
		Expect(controllerWrites(begin)).NotTo(Or(HaveKey("patch httproutes"), HaveKey("patch referencegrants")))

		By("repairing what drifts, or is added")
		route = routeOf(ctx, s)
		rules, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
		Expect(err).NotTo(HaveOccurred())
		rules[0].(map[string]any)["filters"] = []any{map[string]any{
			"type": "URLRewrite", "urlRewrite": map[string]any{"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/site/other"}},
		}}
		Expect(unstructured.SetNestedSlice(route.Object, rules, "spec", "rules")).To(Succeed())
		Expect(admin.Update(ctx, route)).To(Succeed())
		Eventually(func(ctx context.Context) bool {
			rules, _, _ := unstructured.NestedSlice(routeOf(ctx, s).Object, "spec", "rules")
			_, filtered := rules[0].(map[string]any)["filters"]
			return filtered
		}).WithContext(ctx).Should(BeFalse())
		Expect(admin.Delete(ctx, grantOf(ctx, s))).To(Succeed())
		Eventually(func(ctx context.Context) bool {
			now := grantOf(ctx, s)
			return now != nil && now.GetUID() != grant.GetUID()
		}).WithContext(ctx).Should(BeTrue())

		By("giving way to an Ingress")
		expose(ctx, s, ingressTo("records.example.com"))
		expectAddress(ctx, s, "True Exposed https://records.example.com/site/routed")
		Eventually(routeOf).WithArguments(s).WithContext(ctx).Should(BeNil())
		Eventually(grantOf).WithArguments(s).WithContext(ctx).Should(BeNil())
		expose(ctx, s, routeBy("public", "oak.example.org"))
		expectAddress(ctx, s, "False RoutePending https://oak.example.org/site/routed")
		Eventually(ingressOf).WithArguments(s).WithContext(ctx).Should(BeNil())

		By("going with the Site")
		deleteAndWait(ctx, s)
		Eventually(routeOf).WithArguments(s).WithContext(ctx).Should(BeNil())
		Eventually(grantOf).WithArguments(s).WithContext(ctx).Should(BeNil())
	})

	It("is not to be had from a Gateway that the operator does not allow", func(ctx SpecContext) {
		installGatewayAPI(ctx)
		startController(ctx)
		s := createExposed(ctx, "gatecrasher", routeBy("private", "oak.example.org"))
		expectAddress(ctx, s, "False GatewayNotAllowed "+publicURL+"/site/gatecrasher")
		Expect(routeOf(ctx, s)).To(BeNil())
		Expect(grantOf(ctx, s)).To(BeNil())
	})

	It("leaves a route of that name alone that is the tenant's own", func(ctx SpecContext) {
		installGatewayAPI(ctx)
		startController(ctx)
		namespace := newNamespace(ctx)
		own := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hostnames": []any{"shop.example.org"}}}}
		own.SetGroupVersionKind(exposure.RouteKind)
		own.SetNamespace(namespace)
		own.SetName(exposure.RouteName)
		own.SetAnnotations(map[string]string{v1alpha1.SiteAnnotation: namespace + "/oak"})
		Expect(admin.Create(ctx, own)).To(Succeed())
		s := createSite(ctx, namespace, "oak", "shop")
		expectReady(ctx, s)
		Expect(routeOf(ctx, s)).NotTo(BeNil())
	})
})

var _ = Describe("What leads to sites", func() {
	ingress := func(namespace, name, path, service string) *networkingv1.Ingress {
		prefix := networkingv1.PathTypePrefix
		return &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
				Host: "records.example.com",
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: path, PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}},
				}}}},
			}}},
		}
	}

	It("leads the controller's nowhere else", func(ctx SpecContext) {
		controller, namespace := clientOf(controllerUser), newNamespace(ctx)
		create := func(object client.Object) error { return controller.Create(ctx, object, client.DryRunAll) }
		Expect(create(ingress(operatorNamespace, "site-a", "/site/a", "paddock-facade"))).To(Succeed())
		Expect(create(ingress(operatorNamespace, "paddock-facade", "/site/a", "paddock-facade"))).To(beForbidden("are named site-"))
		Expect(create(ingress(operatorNamespace, "site-a", "/", "paddock-facade"))).To(beForbidden("below /site/"))
		Expect(create(ingress(operatorNamespace, "site-a", "/site/a", "paddock-aggregated"))).To(beForbidden("to the Service paddock-facade"))
		hostless := ingress(operatorNamespace, "site-a", "/site/a", "paddock-facade")
		hostless.Spec.Rules[0].Host = ""
		Expect(create(hostless)).To(beForbidden("from a host"))
		everything := ingress(operatorNamespace, "site-a", "/site/a", "paddock-facade")
		everything.Spec.DefaultBackend = &everything.Spec.Rules[0].HTTP.Paths[0].Backend
		Expect(create(everything)).To(beForbidden("from a host"))

		By("and is in no other namespace")
		Expect(create(ingress(namespace, "site-a", "/site/a", "paddock-facade"))).NotTo(Succeed())

		By("nor the operator's")
		Expect(admin.Create(ctx, ingress(operatorNamespace, "paddock-facade", "/site", "paddock-facade"))).To(Succeed())
		own := get[networkingv1.Ingress](ctx, operatorNamespace, "paddock-facade")
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, own)).To(Succeed()) })
		Expect(controller.Delete(ctx, own)).To(beForbidden("are named site-"))
	})
})

// installGatewayAPI installs the kinds that we write, of the release that hack/tools pins.
func installGatewayAPI(ctx context.Context) {
	GinkgoHelper()
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api")
	download.Dir = filepath.Join("..", "..", "hack", "tools", "gateway-api")
	out, err := download.Output()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	var module struct{ Dir string }
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	for _, kind := range []string{"httproutes", "referencegrants"} {
		kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(module.Dir, "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml"))
	}
	awaitKinds(ctx, exposure.RouteKind, exposure.GrantKind)
}

// judge writes what the controller of the route's Gateways makes of it.
func judge(ctx context.Context, s *v1alpha1.Site, accepted, reason string) {
	GinkgoHelper()
	route := routeOf(ctx, s)
	Expect(route).NotTo(BeNil())
	parents, _, err := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
	Expect(err).NotTo(HaveOccurred())
	var statuses []any
	for _, parent := range parents {
		var conditions []any
		for kind, status := range map[string]string{"Accepted": accepted, "ResolvedRefs": "True"} {
			conditions = append(conditions, map[string]any{
				"type": kind, "status": status, "reason": reason, "message": "says the gateway", "observedGeneration": route.GetGeneration(),
				"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			})
		}
		statuses = append(statuses, map[string]any{"parentRef": parent, "controllerName": "example.org/gateway", "conditions": conditions})
	}
	Expect(unstructured.SetNestedSlice(route.Object, statuses, "status", "parents")).To(Succeed())
	Expect(admin.Status().Update(ctx, route)).To(Succeed())
}
