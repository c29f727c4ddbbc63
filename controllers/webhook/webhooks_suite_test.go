package webhook_test

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events/signing"
)

func newSecret(namespace, name, kind, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretType(kind),
		StringData: map[string]string{v1alpha1.WebhookSecretKey: value},
	}
}

// madeSecret is the Secret that the controller made for a Webhook.
func madeSecret(ctx context.Context, hook *v1alpha1.Webhook) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: hook.Namespace, Name: hook.Status.SecretName}, secret)).To(Succeed())
	Expect(secret.Type).To(BeEquivalentTo(v1alpha1.SecretTypeWebhook))
	Expect(metav1.IsControlledBy(secret, hook)).To(BeTrue())
	return secret
}

var _ = Describe("A Webhook", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("is active while its type is on, and the type while it has one", func(ctx SpecContext) {
		hook, event := newHook(namespace), newEvent(namespace)
		Expect(admin.Create(ctx, event)).To(Succeed())
		expectActive(ctx, event, "False NoWebhooks")
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectActive(ctx, hook, "True Active")
		expectActive(ctx, event, "True Active")
		Expect(event.Status.Webhooks).To(BeEquivalentTo(1))
		patch(ctx, event, `{"spec":{"enabled":false}}`)
		expectActive(ctx, event, "False Disabled")
		expectActive(ctx, hook, "False TypeDisabled")
		patch(ctx, event, `{"spec":{"enabled":true}}`)
		expectActive(ctx, hook, "True Active")
		patch(ctx, hook, `{"spec":{"active":false}}`)
		expectActive(ctx, hook, "False Inactive")
		expectActive(ctx, event, "False NoWebhooks")
		Expect(admin.Delete(ctx, event)).To(Succeed())
		patch(ctx, hook, `{"spec":{"active":true}}`)
		expectActive(ctx, hook, "False TypeDisabled")
	})

	It("has an Event for each change of a condition, and none for other changes", func(ctx SpecContext) {
		hook, event := newHook(namespace), newEvent(namespace)
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectActive(ctx, hook, "False TypeDisabled")
		patch(ctx, hook, `{"spec":{"description":"other"}}`)
		Expect(admin.Create(ctx, event)).To(Succeed())
		expectActive(ctx, hook, "True Active")
		expectActive(ctx, event, "True Active")
		described := func(kind string) func(context.Context) []string {
			return func(ctx context.Context) []string {
				_, events, _ := strings.Cut(kubectl(ctx, "describe", "-n", namespace, kind), "Events:")
				var reasons []string
				for _, line := range strings.Split(events, "\n") {
					if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "Normal" || fields[0] == "Warning") {
						reasons = append(reasons, fields[0]+" "+fields[1])
					}
				}
				return reasons
			}
		}
		first := []string{"Normal Accepted", "Normal TypeDisabled", "Normal NotActive", "Normal Active", "Normal NoDeliveries"}
		Eventually(described("webhook/" + hook.Name)).WithContext(ctx).Should(ConsistOf(first))

		By("attempts fail, for one reason and then another")
		for _, reason := range []string{"certificate", "timeout"} {
			report := `{"status":{"failingSince":"2031-03-01T09:00:00Z","lastFailure":{"reason":"` + reason + `","message":"no answer"}}}`
			Expect(admin.Status().Patch(ctx, hook, client.RawPatch("application/merge-patch+json", []byte(report)))).To(Succeed())
			Eventually(message(hook, v1alpha1.ConditionDelivering)).WithContext(ctx).Should(ContainSubstring("The last one (" + reason + "): no answer."))
			Expect(condition(hook, v1alpha1.ConditionDelivering)(ctx)).To(Equal("False Failing"))
		}
		Eventually(described("webhook/" + hook.Name)).WithContext(ctx).Should(ConsistOf(append(first, "Warning Failing")))
		Eventually(described("webhookevent/" + event.Name)).WithContext(ctx).Should(ContainElements("Normal Accepted", "Normal Active"))
	})

	It("stays disabled by the server until it is enabled", func(ctx SpecContext) {
		hook, event := newHook(namespace), newEvent(namespace)
		Expect(admin.Create(ctx, event)).To(Succeed())
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectActive(ctx, hook, "True Active")
		disable := func() {
			GinkgoHelper()
			Eventually(func() error {
				if err := admin.Get(ctx, client.ObjectKeyFromObject(hook), hook); err != nil {
					return err
				}
				meta.SetStatusCondition(&hook.Status.Conditions, metav1.Condition{
					Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGone, Message: "the receiver is gone", ObservedGeneration: hook.Generation,
				})
				return admin.Status().Update(ctx, hook)
			}).Should(Succeed())
			expectActive(ctx, hook, "False Disabled")
			expectActive(ctx, event, "False NoWebhooks")
		}
		disable()
		patch(ctx, hook, `{"metadata":{"labels":{"wake":"up"}}}`)
		Consistently(condition(hook, v1alpha1.ConditionActive)).WithContext(ctx).WithTimeout(time.Second).Should(Equal("False Disabled"))

		By("by its spec")
		patch(ctx, hook, `{"spec":{"description":"repaired"}}`)
		expectActive(ctx, hook, "True Active")
		Eventually(condition(hook, v1alpha1.ConditionDisabled)).WithContext(ctx).Should(Equal("False Enabled"))

		By("by its annotation")
		disable()
		patch(ctx, hook, `{"metadata":{"annotations":{"paddock.health/enabled-at":"`+time.Now().Add(time.Second).UTC().Format(time.RFC3339)+`"}}}`)
		expectActive(ctx, hook, "True Active")
		expectActive(ctx, event, "True Active")
	})

	It("gets a secret, if it names none", func(ctx SpecContext) {
		hook := newHook(namespace)
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectAccepted(ctx, hook, "True Accepted")
		Expect(signing.CheckShared(string(madeSecret(ctx, hook).Data[v1alpha1.WebhookSecretKey]))).To(Succeed())
		Expect(hook.Status.PublicKey).To(BeEmpty())

		By("a deleted one is made anew")
		before := madeSecret(ctx, hook)
		Expect(admin.Delete(ctx, before)).To(Succeed())
		Eventually(func(g Gomega) {
			after := &corev1.Secret{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(before), after)).To(Succeed())
			g.Expect(after.Data).NotTo(Equal(before.Data))
		}).Should(Succeed())

		By("one that signs with a key says how to check it")
		keyed := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.Signing = v1alpha1.SigningEd25519 })
		keyed.Name = "keyed"
		Expect(admin.Create(ctx, keyed)).To(Succeed())
		expectAccepted(ctx, keyed, "True Accepted")
		Expect(signing.Public(string(madeSecret(ctx, keyed).Data[v1alpha1.WebhookSecretKey]))).To(Equal(keyed.Status.PublicKey))
	})

	It("gets one when the policy that refused it is gone", func(ctx SpecContext) {
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-secrets"}}
		policy.Spec.MatchConstraints = &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}}},
		}
		policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no Secrets here"}}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-secrets"}}
		binding.Spec.PolicyName, binding.Spec.ValidationActions = "no-secrets", []admissionv1.ValidationAction{admissionv1.Deny}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, policy)).To(Succeed()) })
		Eventually(func() error {
			return admin.Create(ctx, newSecret(namespace, "probe", "Opaque", "x"), client.DryRunAll)
		}).Should(MatchError(apierrors.IsInvalid, "a refusal"))
		hook := newHook(namespace)
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectAccepted(ctx, hook, "False SecretsForbidden")
		Expect(message(hook, v1alpha1.ConditionAccepted)(ctx)).To(ContainSubstring("no Secrets here"))
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Eventually(condition(hook, v1alpha1.ConditionAccepted)).WithContext(ctx).WithTimeout(time.Minute).Should(Equal("True Accepted"))
	})

	It("says what is wrong with the Secret it names, and takes up a better one", func(ctx SpecContext) {
		hook := newHook(namespace, func(s *v1alpha1.WebhookSpec) { s.SecretRef = &v1alpha1.WebhookSecretReference{Name: "mine"} })
		Expect(admin.Create(ctx, hook)).To(Succeed())
		expectAccepted(ctx, hook, "False SecretNotFound")
		other := newSecret(namespace, "mine", "Opaque", signing.NewShared())
		Expect(admin.Create(ctx, other)).To(Succeed())
		Consistently(condition(hook, v1alpha1.ConditionAccepted)).WithContext(ctx).WithTimeout(time.Second).Should(Equal("False SecretNotFound"))
		Expect(admin.Delete(ctx, other)).To(Succeed())
		mine := newSecret(namespace, "mine", v1alpha1.SecretTypeWebhook, "whsec_bad")
		Expect(admin.Create(ctx, mine)).To(Succeed())
		expectAccepted(ctx, hook, "False InvalidSecret")
		expectActive(ctx, hook, "False NotAccepted")
		mine.StringData = map[string]string{v1alpha1.WebhookSecretKey: signing.NewShared()}
		Expect(admin.Update(ctx, mine)).To(Succeed())
		expectAccepted(ctx, hook, "True Accepted")
		patch(ctx, hook, `{"spec":{"headersSecretRef":{"name":"headers"}}}`)
		expectAccepted(ctx, hook, "False SecretNotFound")
		Expect(admin.Create(ctx, newSecret(namespace, "headers", v1alpha1.SecretTypeWebhook, "x"))).To(Succeed())
		expectAccepted(ctx, hook, "True Accepted")
	})

	It("notes when kubectl's users changed it, and nothing else", func(ctx SpecContext) {
		hook, event := newHook(namespace), newEvent(namespace)
		for _, object := range []client.Object{hook, event} {
			Expect(admin.Create(ctx, object)).To(Succeed())
			expectActive(ctx, object, map[bool]string{true: "False TypeDisabled", false: "True Active"}[object == hook])
			Expect(object.GetAnnotations()).NotTo(HaveKey(v1alpha1.ChangedAnnotation))
			began := time.Now().Truncate(time.Second)
			patch(ctx, object, `{"spec":{"description":"by kubectl"}}`)
			Eventually(func(g Gomega) {
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				at, recorded := v1alpha1.ChangedAt(object)
				g.Expect(recorded).To(BeTrue())
				g.Expect(at).To(BeTemporally(">=", began))
				g.Expect(at).To(BeTemporally("<=", time.Now().Add(time.Second)))
			}).Should(Succeed())
			Expect(object.GetAnnotations()[v1alpha1.ChangedAnnotation]).To(HavePrefix("2 "))
		}
		expectActive(ctx, hook, "True Active")
		expectActive(ctx, event, "True Active")

		By("what is settled is not written again, whoever wakes the controllers")
		patch(ctx, madeSecret(ctx, hook), `{"metadata":{"labels":{"wake":"up"}}}`)
		Consistently(func(g Gomega) {
			for _, object := range []client.Object{newHook(namespace), newEvent(namespace)} {
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				g.Expect(object.GetResourceVersion()).To(BeElementOf(hook.ResourceVersion, event.ResourceVersion))
			}
		}).WithTimeout(2 * time.Second).Should(Succeed())
	})

	It("shows what matters", func(ctx SpecContext) {
		hook, event := newHook(namespace), newEvent(namespace)
		Expect(admin.Create(ctx, hook)).To(Succeed())
		Expect(admin.Create(ctx, event)).To(Succeed())
		expectActive(ctx, hook, "True Active")
		expectActive(ctx, event, "True Active")
		Expect(strings.Fields(lines(kubectl(ctx, "get", "webhooks", "-n", namespace))[0])).To(Equal([]string{"NAME", "EVENT", "TYPE", "URL", "ACCEPTED", "ACTIVE", "LAST", "SUCCESS", "PENDING", "FAILING", "SINCE", "AGE"}))
		Expect(strings.Fields(lines(kubectl(ctx, "get", "webhookevents", "-n", namespace))[1])[:5]).To(Equal([]string{"event", "user.created", "true", "True", "Unknown"}))
		kubectl(ctx, "wait", "-n", namespace, "--for=condition=Accepted", "webhookevent/event", "webhook/hook", "--timeout=30s")
	})
})

var _ = DescribeTable("The schema takes a Webhook", func(ctx SpecContext, change string) {
	namespace := newNamespace(ctx)
	hook := newHook(namespace)
	Expect(admin.Create(ctx, hook)).To(Succeed())
	patch(ctx, hook, `{"spec":`+change+`}`)
},
	Entry("that never retries", `{"retry":{"delaysSeconds":[]}}`), Entry("that retries as often as can be", `{"retry":{"delaysSeconds":[`+strings.Repeat("1,", 19)+`86400]}}`),
	Entry("with the highest port", `{"url":"https://[2001:db8::1]:65535/a"}`), Entry("with an empty port", `{"url":"https://example.org:/a"}`),
	Entry("with authorities", `{"caBundle":"`+base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----"))+`"}`),
)

var _ = DescribeTable("The schema refuses a Webhook", func(ctx SpecContext, change string) {
	namespace := newNamespace(ctx)
	hook := newHook(namespace)
	Expect(admin.Create(ctx, hook)).To(Succeed())
	err := admin.Patch(ctx, hook, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+change+`}`)))
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
},
	Entry("of no type", `{"eventType":null}`), Entry("of an unknown type", `{"eventType":"user.deleted"}`),
	Entry("without an address", `{"url":null}`), Entry("by http", `{"url":"http://example.org/"}`), Entry("without a host", `{"url":"https:///a"}`), Entry("with a port alone", `{"url":"https://:443/"}`),
	Entry("with a port above 65535", `{"url":"https://example.org:65536/"}`), Entry("with port 0", `{"url":"https://example.org:0/"}`), Entry("with a port of many digits", `{"url":"https://[::1]:99999999999999999999/"}`),
	Entry("with a user", `{"url":"https://me@example.org/"}`), Entry("with a fragment", `{"url":"https://example.org/#a"}`), Entry("with an endless address", `{"url":"https://example.org/`+strings.Repeat("a", 2048)+`"}`),
	Entry("that does not say whether it is active", `{"active":null}`), Entry("with a field twice", `{"fields":["a","a"]}`), Entry("with an empty field", `{"fields":[""]}`),
	Entry("with a list of extensions", `{"extensions":[]}`), Entry("signed in another way", `{"signing":"RSA"}`), Entry("that waits too long", `{"timeoutSeconds":31}`), Entry("or not at all", `{"timeoutSeconds":-1}`),
	Entry("that retries too often", `{"retry":{"delaysSeconds":[`+strings.Repeat("1,", 20)+`1]}}`), Entry("that retries at once", `{"retry":{"delaysSeconds":[0]}}`), Entry("that retries too late", `{"retry":{"delaysSeconds":[86401]}}`),
	Entry("that does not say when it retries", `{"retry":{}}`), Entry("with authorities that are not base64", `{"caBundle":"?"}`), Entry("with a nameless certificate", `{"clientCertificateSecretRef":{}}`),
	Entry("in another order", `{"ordering":"Random"}`), Entry("with a nameless secret", `{"secretRef":{}}`), Entry("with a long description", `{"description":"`+strings.Repeat("x", 10001)+`"}`),
)

var _ = Describe("Secrets", func() {
	for _, account := range []string{"paddock-controller", "paddock-apiserver"} {
		It("of other types are not for "+account, func(ctx SpecContext) {
			program := asAccount(account)
			namespace := newNamespace(ctx)
			Expect(program.Create(ctx, newSecret(namespace, "ours", v1alpha1.SecretTypeWebhook, "x"))).To(Succeed())
			for _, kind := range []string{"Opaque", "kubernetes.io/service-account-token", v1alpha1.SecretTypeDSN} {
				secret := newSecret(namespace, "other", kind, "x")
				secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
				Expect(program.Create(ctx, secret)).To(MatchError(ContainSubstring("of type paddock.health/webhook only")))
			}
			mayRead := program.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "ours"}, &corev1.Secret{})
			Expect(apierrors.IsForbidden(mayRead)).To(Equal(account == "paddock-apiserver"))
		})
	}
})
