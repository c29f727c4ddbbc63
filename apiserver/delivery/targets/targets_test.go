package targets_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/delivery/targets"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/store"
)

// newHook creates a Webhook.
func newHook(ctx context.Context, namespace string, change ...func(*v1alpha1.Webhook)) *v1alpha1.Webhook {
	GinkgoHelper()
	active := true
	hook := &v1alpha1.Webhook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hook"},
		Spec: v1alpha1.WebhookSpec{
			EventType: "user.created", URL: "https://example.org/hook", Active: &active,
		},
	}
	for _, c := range change {
		c(hook)
	}
	Expect(admin.Create(ctx, hook)).To(Succeed())
	return hook
}

// handOver does what the controller does for a Webhook: by default with a secret that signs alone.
func handOver(ctx context.Context, hook *v1alpha1.Webhook, data map[string]string) {
	GinkgoHelper()
	if data == nil {
		data = map[string]string{v1alpha1.WebhookSecretKey: signing.NewShared()}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secretsNamespace, Name: v1alpha1.DeliverySecretName(hook.Namespace, hook.Name),
			Annotations: map[string]string{v1alpha1.WebhookRevisionAnnotation: hook.Revision()},
		},
		Type: v1alpha1.SecretTypeWebhook, StringData: data,
	}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, secret))).To(Succeed())
	Expect(admin.Create(ctx, secret)).To(Succeed())
}

func idOf(hook *v1alpha1.Webhook) string {
	return v1alpha1.ResourceID("webhooks", hook.Namespace, hook.Name)
}

// longAgo is when events were accepted that no cache can be too old for.
var longAgo = time.Now().Add(-time.Hour)

// settings returns what is known of a Webhook once its present generation is, with its Secrets.
func settings(ctx context.Context, hook *v1alpha1.Webhook) (delivery.Webhook, error) {
	GinkgoHelper()
	var found delivery.Webhook
	var err error
	Eventually(func() int64 {
		found, err = hooks.Site(hook.Namespace).Webhook(ctx, idOf(hook), longAgo)
		var secret *delivery.SecretError
		if errors.As(err, &secret) {
			return secret.Webhook.Generation
		}
		return found.Generation
	}).Should(Equal(hook.Generation), "%v", err)
	return found, err
}

func patch(ctx context.Context, hook *v1alpha1.Webhook, change string) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, hook, client.RawPatch("application/merge-patch+json", []byte(change)))).To(Succeed())
}

func newPair() map[string]string {
	GinkgoHelper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	Expect(err).NotTo(HaveOccurred())
	key, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return map[string]string{
		v1alpha1.WebhookCertificateKey: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		v1alpha1.WebhookPrivateKeyKey:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
}

var _ = Describe("The settings of a webhook", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("are those of the object, with defaults", func(ctx SpecContext) {
		hook := newHook(ctx, namespace)
		handOver(ctx, hook, nil)
		found, err := settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Keys).To(HaveLen(1))
		found.Keys = nil
		Expect(found).To(Equal(delivery.Webhook{
			ID: idOf(hook), Generation: 1, URL: "https://example.org/hook", Delays: delivery.DefaultDelays, Timeout: 15 * time.Second,
			Changed: hook.CreationTimestamp.Time,
		}))
		_, err = hooks.Site("elsewhere").Webhook(ctx, idOf(hook), longAgo)
		Expect(err).To(MatchError(store.ErrNotFound))
		Expect(admin.Delete(ctx, hook)).To(Succeed())
		Eventually(func() error {
			_, err := hooks.Site(namespace).Webhook(ctx, idOf(hook), longAgo)
			return err
		}).Should(MatchError(store.ErrNotFound))
	})

	It("have what its Secrets hold", func(ctx SpecContext) {
		hook := newHook(ctx, namespace, func(hook *v1alpha1.Webhook) {
			hook.Spec.Clearance = v1alpha1.ClearancePrivileged
			hook.Spec.PreviousSecret = &v1alpha1.PreviousWebhookSecret{Name: "signed", Until: metav1.NewTime(time.Now().Add(time.Hour))}
			hook.Spec.HeadersSecretRef = &v1alpha1.WebhookSecretReference{Name: "headers"}
			hook.Spec.ClientCertificateSecretRef = &v1alpha1.WebhookSecretReference{Name: "pair"}
			hook.Spec.CABundle = []byte("-----BEGIN CERTIFICATE-----")
			hook.Spec.Retry = &v1alpha1.WebhookRetry{DelaysSeconds: []int32{1, 60}}
			hook.Spec.TimeoutSeconds, hook.Spec.Fields = 3, []string{"name"}
		})
		handed := newPair()
		handed["X-Practice"], handed["Authorization"] = "1042", "Bearer x\n"
		handed[v1alpha1.WebhookSecretKey], handed[v1alpha1.WebhookPreviousSecretKey] = signing.NewShared(), signing.NewShared()
		handOver(ctx, hook, handed)
		found, err := settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Keys).To(HaveLen(2))
		Expect(found.Header).To(Equal(map[string]string{"X-Practice": "1042", "Authorization": "Bearer x"}))
		Expect(found.ClientCertificate.Certificate).To(HaveLen(1))
		Expect(string(found.CABundle)).To(Equal("-----BEGIN CERTIFICATE-----"))
		Expect(found.Delays).To(Equal([]time.Duration{time.Second, time.Minute}))
		Expect(found.Timeout).To(Equal(3 * time.Second))
		Expect(found.Fields).To(Equal([]string{"name"}))
		Expect(found.Cleared).To(BeTrue())

		By("the secret before counts until its time, and is not missed")
		patch(ctx, hook, `{"spec":{"previousSecret":{"until":"2001-01-01T00:00:00Z"},"retry":{"delaysSeconds":[]}}}`)
		handOver(ctx, hook, handed)
		found, err = settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Keys).To(HaveLen(1))
		Expect(found.Delays).To(BeEmpty())
		patch(ctx, hook, `{"spec":{"previousSecret":{"name":"nowhere","until":"2999-01-01T00:00:00Z"}}}`)
		delete(handed, v1alpha1.WebhookPreviousSecretKey)
		handOver(ctx, hook, handed)
		found, err = settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Keys).To(HaveLen(1))
	})

	It("are not known before the Secrets of this generation are handed over", func(ctx SpecContext) {
		hook := newHook(ctx, namespace)
		problem := func() string {
			_, err := hooks.Site(namespace).Webhook(ctx, idOf(hook), longAgo)
			var secret *delivery.SecretError
			switch {
			case err == nil:
				return ""
			case errors.As(err, &secret):
				Expect(secret.Webhook.Delays).To(Equal(delivery.DefaultDelays))
				return "Secret: " + secret.Problem
			default:
				return err.Error()
			}
		}
		const missing = "the controller has not copied the Secrets of the webhook yet"
		Eventually(problem).Should(Equal(missing))
		handOver(ctx, hook, map[string]string{v1alpha1.WebhookSecretKey: signing.NewShared(), "Authorization": "Bearer for example.org"})
		Eventually(problem).Should(BeEmpty())
		By("those for another receiver")
		patch(ctx, hook, `{"spec":{"url":"https://other.example.org/hook"}}`)
		Eventually(problem).Should(Equal(missing))
		By("those of a namesake")
		hook.UID = "another"
		handOver(ctx, hook, nil)
		Consistently(problem).WithTimeout(500 * time.Millisecond).Should(Equal(missing))

		By("saying what the controller found out")
		Eventually(func() error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(hook), hook); err != nil {
				return err
			}
			meta.SetStatusCondition(&hook.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSecretNotFound, Message: "there is none", ObservedGeneration: hook.Generation,
			})
			return admin.Status().Update(ctx, hook)
		}).Should(Succeed())
		Eventually(problem).Should(Equal("Secret: there is none"))
		patch(ctx, hook, `{"spec":{"url":"https://example.org/hook"}}`)
		Eventually(problem).Should(Equal(missing))
	})
})

var _ = Describe("A webhook that is to be disabled", func() {
	var (
		namespace string
		hook      *v1alpha1.Webhook
		found     delivery.Webhook
	)
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		hook = newHook(ctx, namespace)
		handOver(ctx, hook, nil)
		var err error
		found, err = settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
	})
	disabled := func(ctx context.Context) func() string {
		return func() string {
			found, err := hooks.Site(namespace).Webhook(ctx, idOf(hook), longAgo)
			if err != nil {
				return err.Error()
			}
			return found.Disabled
		}
	}
	events := func(ctx context.Context) func(Gomega) []string {
		return func(g Gomega) []string {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			var notes []string
			for _, item := range list.Items {
				notes = append(notes, item.Type+" "+item.Reason+" "+item.Regarding.Kind+" "+item.Regarding.Name+": "+item.Note)
			}
			return notes
		}
	}

	It("has a condition and an Event, once, until it is enabled", func(ctx SpecContext) {
		message := "410 " + strings.Repeat("é", 1000)
		for range 2 { // as several attempts may find out at the same time
			Expect(hooks.Site(namespace).Disable(ctx, found, delivery.CauseGone, message)).To(Succeed())
		}
		Eventually(disabled(ctx)).Should(Equal("the webhook was disabled: " + message))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(hook), hook)).To(Succeed())
		condition := meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled)
		Expect(condition).To(HaveField("Status", metav1.ConditionTrue))
		Expect(condition).To(HaveField("Reason", v1alpha1.ReasonGone))
		Expect(condition).To(HaveField("ObservedGeneration", int64(1)))
		Eventually(events(ctx)).Should(HaveLen(1))
		Consistently(events(ctx)).WithTimeout(time.Second).Should(ConsistOf(HavePrefix("Warning Disabled Webhook hook: the webhook is disabled: 410 é")))

		By("the annotation")
		patch(ctx, hook, `{"metadata":{"annotations":{"paddock.health/enabled-at":"`+time.Now().Add(time.Second).UTC().Format(time.RFC3339)+`"}}}`)
		Eventually(disabled(ctx)).Should(BeEmpty())
		again, err := settings(ctx, hook)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Changed).To(BeTemporally("==", hook.EnabledAt()))

		By("and disabled again, since then")
		Eventually(time.Now).Should(BeTemporally(">", hook.EnabledAt().Add(time.Second)))
		Expect(hooks.Site(namespace).Disable(ctx, again, delivery.CauseFailing, "all of them")).To(Succeed())
		Eventually(disabled(ctx)).Should(ContainSubstring("all of them"))

		By("the spec")
		patch(ctx, hook, `{"spec":{"url":"https://example.org/other"}}`)
		handOver(ctx, hook, nil)
		Eventually(disabled(ctx)).Should(BeEmpty())
	})

	It("stays enabled where its settings have changed since", func(ctx SpecContext) {
		patch(ctx, hook, `{"spec":{"url":"https://example.org/other"}}`)
		Expect(hooks.Site(namespace).Disable(ctx, found, delivery.CauseGone, "410")).To(MatchError(ContainSubstring("changed in the meantime")))
		handOver(ctx, hook, nil)
		Eventually(disabled(ctx)).Should(BeEmpty())
		Consistently(disabled(ctx)).WithTimeout(500 * time.Millisecond).Should(BeEmpty())
		patch(ctx, hook, `{"spec":{"active":false}}`)
		Eventually(disabled(ctx)).Should(Equal("the webhook is not active; set active to true to send events"))
	})
})

var _ = Describe("The health of webhooks", func() {
	It("is in their status, for kubectl", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		hook := newHook(ctx, namespace)
		other := newHook(ctx, namespace, func(hook *v1alpha1.Webhook) { hook.Name = "other" })
		at := time.Now().Add(-time.Hour)
		report := func(health map[string]delivery.Health) {
			GinkgoHelper()
			Eventually(func(g Gomega) { // the cache may not know the Webhooks yet
				g.Expect(hooks.Report(ctx, namespace, health)).To(Succeed())
				for _, each := range []*v1alpha1.Webhook{hook, other} {
					g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(each), each)).To(Succeed())
					g.Expect(each.Status.Pending).To(HaveValue(Equal(health[idOf(each)].Pending)))
				}
			}).Should(Succeed())
		}
		report(map[string]delivery.Health{idOf(hook): {Pending: 3, LastSuccess: at, FailingSince: at.Add(time.Minute)}})
		Expect(hook.Status.LastSuccess.Time).To(BeTemporally("~", at, time.Second))
		Expect(hook.Status.FailingSince.Time).To(BeTemporally("~", at.Add(time.Minute), time.Second))
		Expect(other.Status.LastSuccess).To(BeNil())
		rows := strings.Split(strings.TrimSpace(kubectl(ctx, "get", "webhooks", "-n", namespace)), "\n")
		Expect(strings.Fields(rows[0])).To(ContainElements("LAST", "SUCCESS", "PENDING", "FAILING", "SINCE"))
		Expect(strings.Fields(rows[1])).To(ContainElements("60m", "3", "59m"))

		By("what is settled is not written again")
		version := hook.ResourceVersion
		handOver(ctx, hook, nil)
		Eventually(func() string {
			found, _ := hooks.Site(namespace).Webhook(ctx, idOf(hook), longAgo)
			return found.FailingSince.UTC().Format(time.RFC3339)
		}).Should(Equal(at.Add(time.Minute).UTC().Format(time.RFC3339)))
		report(map[string]delivery.Health{idOf(hook): {Pending: 3, LastSuccess: at, FailingSince: at.Add(time.Minute)}})
		Expect(hook.ResourceVersion).To(Equal(version))

		By("the last failed attempt is there, cut to a length that the schema takes")
		failing := delivery.Health{Pending: 3, LastSuccess: at, FailingSince: at.Add(time.Minute)}
		failing.LastFailure = delivery.Attempt{Reason: delivery.ReasonConnection, Message: strings.Repeat("é", 300) + "\xff"}
		report(map[string]delivery.Health{idOf(hook): failing})
		Eventually(func(g Gomega) {
			g.Expect(hooks.Report(ctx, namespace, map[string]delivery.Health{idOf(hook): failing})).To(Succeed())
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(hook), hook)).To(Succeed())
			g.Expect(hook.Status.LastFailure).To(HaveValue(Equal(v1alpha1.WebhookFailure{Reason: "connection", Message: strings.Repeat("é", 256)})))
		}).Should(Succeed())
		version = hook.ResourceVersion
		failing.LastFailure = delivery.Attempt{}
		report(map[string]delivery.Health{idOf(hook): failing})
		Expect(hook.ResourceVersion).To(Equal(version), "without attempts in the log, it stays")

		By("a success ends the failures; what logs forget stays")
		report(map[string]delivery.Health{})
		Expect(hook.Status.FailingSince).To(BeNil())
		Expect(hook.Status.LastFailure).To(BeNil())
		Expect(hook.Status.LastSuccess.Time).To(BeTemporally("~", at, time.Second))
	})

	It("is reported although the databases of other Sites do not respond", func(ctx SpecContext) {
		silent := []string{newNamespace(ctx), newNamespace(ctx), newNamespace(ctx)}
		for _, namespace := range silent {
			newHook(ctx, namespace)
		}
		hook := newHook(ctx, newNamespace(ctx))
		pending := func() *int64 {
			GinkgoHelper()
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(hook), hook)).To(Succeed())
			return hook.Status.Pending
		}
		Eventually(func() *int64 { // until the cache has the Webhooks
			Expect(hooks.Report(ctx, hook.Namespace, map[string]delivery.Health{idOf(hook): {Pending: 1}})).To(Succeed())
			return pending()
		}).Should(HaveValue(BeEquivalentTo(1)))
		running, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		DeferCleanup(func() { stop(); <-done })
		go func() {
			defer close(done)
			hooks.KeepReporting(running, func(ctx context.Context, namespace string) (map[string]delivery.Health, error) {
				switch {
				case namespace == hook.Namespace:
					return map[string]delivery.Health{idOf(hook): {Pending: 7}}, nil
				case slices.Contains(silent, namespace):
					<-ctx.Done()
				}
				return nil, ctx.Err()
			})
		}()
		Eventually(pending).Should(HaveValue(BeEquivalentTo(7)))
	})
})

var _ = Describe("Webhooks that cannot be listed", func() {
	It("are not synced, and WaitForSync ends with its context", func(ctx SpecContext) {
		rights, err := cluster.UserConfig("system:serviceaccount:default:default")
		Expect(err).NotTo(HaveOccurred())
		unreadable, err := targets.New(rights, targets.Options{SecretsNamespace: secretsNamespace})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- unreadable.Run(running) }()
		DeferCleanup(func() { stop(); Expect(<-done).To(Succeed()) })
		reader, err := client.New(rights, client.Options{Scheme: admin.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(apierrors.IsForbidden(reader.List(ctx, &v1alpha1.WebhookList{}))).To(BeTrue())
		waiting, end := context.WithTimeout(ctx, time.Second)
		defer end()
		Expect(unreadable.WaitForSync(waiting)).To(BeFalse())
		Expect(hooks.WaitForSync(ctx)).To(BeTrue())
	})
})
