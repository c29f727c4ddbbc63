package pagetoken_test

import (
	"context"
	"encoding/base64"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/controllers/pagetoken"
)

var _ = Describe("The key of page tokens", func() {
	read := func(ctx context.Context) *corev1.Secret {
		GinkgoHelper()
		secret := &corev1.Secret{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: secretName}, secret)).To(Succeed())
		return secret
	}
	kept := func(ctx context.Context) string {
		GinkgoHelper()
		stored := string(read(ctx).Data["key"])
		decoded, err := base64.StdEncoding.DecodeString(stored)
		Expect(err).NotTo(HaveOccurred())
		Expect(decoded).To(HaveLen(32))
		return stored
	}

	AfterEach(func(ctx SpecContext) {
		Expect(admin.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(operatorNamespace))).To(Succeed())
		Expect(admin.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(operatorNamespace))).To(Succeed())
	})

	It("is made where there is none, another one each time, and then left alone", func(ctx SpecContext) {
		keeper := newKeeper()
		Expect(keeper.Keep(ctx)).To(Succeed())
		first, version := kept(ctx), read(ctx).ResourceVersion
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(newKeeper().Keep(ctx)).To(Succeed())
		Expect(read(ctx).ResourceVersion).To(Equal(version))

		By("making it anew when it is deleted")
		Expect(admin.Delete(ctx, read(ctx))).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(kept(ctx)).NotTo(Equal(first))
	})

	It("has others for holds and calendars, which are replaced in time", func(ctx SpecContext) {
		DeferCleanup(func(start time.Time) { now = start }, now)
		first := func(name string) string {
			GinkgoHelper()
			text := string(read(ctx).Data[name])
			Expect(text).To(MatchRegexp(`^[A-Za-z0-9+/]{43}= 20[0-9-]+T[0-9:]+Z\n`))
			return text[:44]
		}
		createSecret(ctx, secretName, key(1)+"\n")
		keeper := newKeeper()
		Expect(keeper.Keep(ctx)).To(Succeed())
		start := map[string]string{}
		for _, name := range []string{"page", "hold", "feed"} {
			start[name] = first(name)
		}
		Expect(start["page"]).To(Equal(key(1)), "page tokens in use stay valid")
		Expect(start["hold"]).NotTo(Or(Equal(start["page"]), Equal(start["feed"])))
		version := read(ctx).ResourceVersion
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(read(ctx).ResourceVersion).To(Equal(version))

		now = now.Add(90 * 24 * time.Hour)
		Expect(keeper.Keep(ctx)).To(Succeed())
		now = now.Add(2 * time.Hour)
		Expect(newKeeper().Keep(ctx)).To(Succeed())
		for _, name := range []string{"page", "hold"} {
			Expect(first(name)).NotTo(Equal(start[name]))
			Expect(string(read(ctx).Data[name])).To(ContainSubstring("\n" + start[name]))
		}
		Expect(first("feed")).To(Equal(start["feed"]))
		Expect(string(read(ctx).Data["key"])).To(Equal(key(1)+"\n"), "the release before reads it")
		Expect(read(ctx).Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "paddock"))
	})

	It("is replaced in time whoever wrote it: the controller, where there was no Secret, or an administrator", func(ctx SpecContext) {
		DeferCleanup(func(start time.Time) { now = start }, now)
		keeper := newKeeper()
		Expect(keeper.Keep(ctx)).To(Succeed())
		for range 2 {
			before := read(ctx)
			now = now.Add(92 * 24 * time.Hour)
			Expect(keeper.Keep(ctx)).To(Succeed())
			Expect(read(ctx).Data["page"]).NotTo(Equal(before.Data["page"]))

			restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: secretName}, Data: read(ctx).Data}
			Expect(admin.Delete(ctx, read(ctx))).To(Succeed())
			Expect(admin.Create(ctx, restored)).To(Succeed())
		}
	})

	It("is not written again because of another entry of the Secret", func(ctx SpecContext) {
		keeper := newKeeper()
		Expect(keeper.Keep(ctx)).To(Succeed())
		noted := read(ctx)
		noted.Data["note"] = []byte("of an administrator")
		Expect(admin.Update(ctx, noted)).To(Succeed())
		counted := &counting{Client: keeper.Client}
		keeper.Client = counted
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(counted.applied).To(BeZero())
		Expect(read(ctx).Data).To(HaveKey("note"))
	})

	It("is put into the empty Secret of the chart, which keeps its labels", func(ctx SpecContext) {
		createSecret(ctx, secretName)
		Expect(newKeeper().Keep(ctx)).To(Succeed())
		kept(ctx)
		Expect(read(ctx).Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "paddock"))
	})

	It("is kept as an administrator writes it", func(ctx SpecContext) {
		createSecret(ctx, secretName, key(1)+"\n")
		Expect(newKeeper().Keep(ctx)).To(Succeed())
		Expect(string(read(ctx).Data["key"])).To(Equal(key(1) + "\n"))
	})

	DescribeTable("is reported where API servers cannot use it, and not replaced", func(ctx SpecContext, malformed string) {
		createSecret(ctx, secretName, malformed)
		version := read(ctx).ResourceVersion
		keeper := newKeeper()
		for range 3 {
			err := keeper.Keep(ctx)
			Expect(err).To(MatchError(ContainSubstring("Secret paddock-system/paddock-page-token-key: data.key is malformed")))
			if malformed != "" {
				Expect(err).NotTo(MatchError(ContainSubstring(malformed)))
			}
		}
		Expect(read(ctx).ResourceVersion).To(Equal(version))
		var events eventsv1.EventList
		Eventually(func(g Gomega) {
			g.Expect(admin.List(ctx, &events, client.InNamespace(operatorNamespace))).To(Succeed())
			g.Expect(events.Items).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		Expect(events.Items).To(HaveLen(1))
		event := events.Items[0]
		Expect(event.Reason).To(Equal(pagetoken.MalformedKey))
		Expect(event.Type).To(Equal(corev1.EventTypeWarning))
		Expect(event.Regarding.Name).To(Equal(secretName))
		Expect(event.Series).To(BeNil(), "one event for each state of the Secret")

		By("going on when it is mended")
		secret := read(ctx)
		secret.Data["key"] = []byte(key(2))
		Expect(admin.Update(ctx, secret)).To(Succeed())
		Expect(keeper.Keep(ctx)).To(Succeed())
		Expect(kept(ctx)).To(Equal(key(2)))
	},
		Entry("with too few bytes", base64.StdEncoding.EncodeToString([]byte("too few bytes"))),
		Entry("in no base64", "not-base64-not-base64-not-base64!"),
		Entry("empty", ""),
	)
})

var _ = Describe("The key of a release before", func() {
	keep := func(ctx context.Context, keeper *pagetoken.Keeper) string {
		GinkgoHelper()
		Expect(keeper.Keep(ctx)).To(Succeed())
		secret := &corev1.Secret{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: secretName}, secret)).To(Succeed())
		return string(secret.Data["key"])
	}
	AfterEach(func(ctx SpecContext) {
		Expect(admin.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(operatorNamespace))).To(Succeed())
	})

	It("is taken over from its Secret", func(ctx SpecContext) {
		createHelmRecord(ctx, 1, key(1))
		createSecret(ctx, formerName, key(2)+"\n")
		createSecret(ctx, secretName)
		Expect(keep(ctx, newKeeper())).To(Equal(key(2)))
	})

	It("is taken over from Helm's newest record of it, where Helm has removed the Secret", func(ctx SpecContext) {
		for revision, of := range []string{key(1), key(2), key(3), "", "bWFsZm9ybWVk"} {
			createHelmRecord(ctx, 8+revision, of)
		}
		createRecord(ctx, 13, "unreadable")
		createSecret(ctx, secretName)
		keeper := newKeeper()
		Expect(keep(ctx, keeper)).To(Equal(key(3)))

		By("not bringing it back when it is deleted")
		Expect(admin.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: secretName}})).To(Succeed())
		Expect(keep(ctx, keeper)).NotTo(Equal(key(3)))
	})

	It("does not replace the one that there is", func(ctx SpecContext) {
		createSecret(ctx, formerName, key(1))
		createHelmRecord(ctx, 1, key(1))
		createSecret(ctx, secretName, key(2))
		Expect(keep(ctx, newKeeper())).To(Equal(key(2)))
	})

	It("is none where its Secret has a value that API servers cannot use", func(ctx SpecContext) {
		createSecret(ctx, formerName, "malformed")
		Expect(keep(ctx, newKeeper())).To(HaveLen(44))
	})
})

// counting counts the calls of Apply.
type counting struct {
	client.Client
	applied int
}

func (c *counting) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.applied++
	return c.Client.Apply(ctx, config, opts...)
}
