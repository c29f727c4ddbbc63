package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	eventsPath = "/site/demo/ahds/v1/webhook-event"
	hooksPath  = "/site/demo/ahds/v1/webhook"
	// doorWriters is how many write through each door at once, doorWrites how often each.
	doorWriters, doorWrites = 8, 8
)

// created expects that a request created something, and returns its id.
func (r response) created(idField string) string {
	GinkgoHelper()
	Expect(r.status).To(Equal(http.StatusCreated), string(r.body))
	return r.field(idField).(string)
}

// everywhere reads a path at every API server, which all answer the same.
func everywhere(path string) response {
	GinkgoHelper()
	answer := send(request{method: "GET", url: paddock.URLs[0] + path})
	for _, base := range paddock.URLs[1:] {
		other := send(request{method: "GET", url: base + path})
		Expect(other.status).To(Equal(answer.status))
		if answer.status == http.StatusOK {
			Expect(other.body).To(Equal(answer.body))
			Expect(other.header.Get("ETag")).To(Equal(answer.header.Get("ETag")))
		}
	}
	return answer
}

var _ = Describe("Webhook events have two doors:", func() {
	It("what REST writes, kubectl gets, patches and deletes", func(ctx SpecContext) {
		id := send(request{method: "POST", url: paddock.URLs[0] + eventsPath, body: `{"eventType":"user.created","isEnabled":true}`}).created("webhookEventId")
		path := eventsPath + "/" + id
		first := everywhere(path)
		Expect(kubectl(ctx, "get", "webhookevents", id, "-n", "demo", "-o", "jsonpath={.spec.eventType} {.spec.enabled}")).To(Equal("user.created true"))

		began := time.Now().Truncate(time.Second)
		kubectl(ctx, "patch", "webhookevents", id, "-n", "demo", "--type=merge", "-p", `{"spec":{"description":"by kubectl","extensions":{"n":1}}}`)
		second := everywhere(path)
		Expect(second.field("description")).To(Equal("by kubectl"))
		Expect(second.header.Get("ETag")).To(HavePrefix(`"2-`))
		updated, err := time.Parse(time.RFC3339, second.field("updatedAt").(string))
		Expect(err).NotTo(HaveOccurred())
		Expect(updated).To(And(BeTemporally(">=", began), BeTemporally("<", time.Now().Add(time.Second))))
		Expect(second.field("createdAt")).To(Equal(first.field("createdAt")))

		By("the controller keeps the time")
		Eventually(func() string {
			return kubectl(ctx, "get", "webhookevents", id, "-n", "demo", "-o", `jsonpath={.metadata.annotations.paddock\.health/changed}`)
		}).Should(HavePrefix("2 "))
		Expect(everywhere(path).body).To(Equal(second.body))

		By("who has not seen the change does not overwrite it")
		stale := request{method: "PATCH", url: paddock.URLs[1] + path, body: `{"isEnabled":false}`, header: map[string]string{"If-Match": first.header.Get("ETag")}}
		Expect(send(stale).status).To(Equal(http.StatusPreconditionFailed))
		stale.method = "DELETE"
		Expect(send(stale).status).To(Equal(http.StatusPreconditionFailed))

		By("what was read can be put back")
		back := send(request{method: "PUT", url: paddock.URLs[1] + path, body: string(second.body), header: map[string]string{"If-Match": second.header.Get("ETag")}})
		Expect(back.body).To(Equal(second.body))

		By("a write of the status is no change")
		kubectl(ctx, "patch", "webhookevents", id, "-n", "demo", "--subresource=status", "--type=merge", "-p", `{"status":{"webhooks":7}}`)
		Expect(everywhere(path).header.Get("ETag")).To(Equal(second.header.Get("ETag")))
		Expect(everywhere(path).body).To(Equal(second.body))

		kubectl(ctx, "delete", "webhookevents", id, "-n", "demo")
		Expect(everywhere(path).status).To(Equal(http.StatusNotFound))
	})

	It("what kubectl applies, REST lists, reads, changes and deletes", func(ctx SpecContext) {
		const manifest = "apiVersion: paddock.health/v1alpha1\nkind: WebhookEvent\nmetadata: {name: on-consult, namespace: demo}\nspec: {eventType: consult.created, enabled: true, extensions: {a: 1}}\n"
		apply(ctx, manifest)
		list := everywhere(eventsPath + "?eventType=consult.created")
		Expect(list.field("meta", "total")).To(BeEquivalentTo(1))
		id := list.field("data").([]any)[0].(map[string]any)["webhookEventId"].(string)
		path := eventsPath + "/" + id
		Expect(everywhere(path).field("description")).To(Equal(""))
		changed := send(request{method: "PATCH", url: paddock.URLs[1] + path, body: `{"description":"by REST","extensions":{"b":2}}`})
		Expect(changed.status).To(Equal(http.StatusOK), string(changed.body))
		Expect(everywhere(path).body).To(Equal(changed.body))
		Expect(kubectl(ctx, "get", "webhookevents", "on-consult", "-n", "demo", "-o", "jsonpath={.spec.description} {.spec.extensions}")).To(Equal(`by REST {"a":1,"b":2}`))

		By("the same manifest again changes nothing of what REST set")
		apply(ctx, manifest)
		Expect(everywhere(path).body).To(Equal(changed.body))

		By("its id cannot be taken by another")
		taken := send(request{method: "POST", url: paddock.URLs[0] + eventsPath, body: `{"webhookEventId":"` + id + `","eventType":"user.created","isEnabled":true}`})
		Expect(taken.status).To(Equal(http.StatusConflict), string(taken.body))

		Expect(send(request{method: "DELETE", url: paddock.URLs[0] + path}).status).To(Equal(http.StatusNoContent))
		Expect(kubectl(ctx, "get", "webhookevents", "on-consult", "-n", "demo", "--ignore-not-found")).To(BeEmpty())
		Expect(everywhere(path).status).To(Equal(http.StatusNotFound))

		By("applied anew it has its id again")
		apply(ctx, manifest)
		Expect(everywhere(path).field("webhookEventId")).To(Equal(id))
		kubectl(ctx, "delete", "webhookevents", "on-consult", "-n", "demo")
	})

	It("and no update between them is lost", func(ctx SpecContext) {
		id := send(request{method: "POST", url: balanced + eventsPath, body: `{"eventType":"user.updated","isEnabled":true,"extensions":{"count":0}}`}).created("webhookEventId")
		objects := objectsClient()
		key := client.ObjectKey{Namespace: "demo", Name: id}
		var group sync.WaitGroup
		for i := range doorWriters {
			group.Go(func() {
				defer GinkgoRecover()
				for n := 1; n <= doorWrites; n++ {
					blind := send(request{method: "PATCH", url: balanced + eventsPath + "/" + id, body: fmt.Sprintf(`{"extensions":{"rest%d":%d}}`, i, n)})
					Expect(blind.status).To(Equal(http.StatusOK), string(blind.body))
					countByREST(balanced + eventsPath + "/" + id)
				}
			})
			group.Go(func() {
				defer GinkgoRecover()
				for n := 1; n <= doorWrites; n++ {
					blind := &v1alpha1.WebhookEvent{}
					blind.Namespace, blind.Name = key.Namespace, key.Name
					patch := fmt.Appendf(nil, `{"spec":{"extensions":{"kubectl%d":%d}}}`, i, n)
					Expect(objects.Patch(ctx, blind, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
					Expect(countByObject(ctx, objects, key)).To(Succeed())
				}
			})
		}
		group.Wait()
		last := everywhere(eventsPath + "/" + id)
		want := map[string]any{"count": float64(2 * doorWriters * doorWrites)}
		for i := range doorWriters {
			want[fmt.Sprintf("rest%d", i)], want[fmt.Sprintf("kubectl%d", i)] = float64(doorWrites), float64(doorWrites)
		}
		Expect(last.field("extensions")).To(Equal(want))
		Expect(last.header.Get("ETag")).To(HavePrefix(fmt.Sprintf(`"%d-`, 1+4*doorWriters*doorWrites)), "each write is a version")
		Expect(send(request{method: "DELETE", url: balanced + eventsPath + "/" + id}).status).To(Equal(http.StatusNoContent))
	}, NodeTimeout(2*time.Minute))
})

func objectsClient() client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	config := cluster.Config()
	config.QPS = -1
	objects, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return objects
}

// countByREST adds one to the event's count, under If-Match.
func countByREST(address string) {
	GinkgoHelper()
	for {
		read := send(request{method: "GET", url: address})
		Expect(read.status).To(Equal(http.StatusOK), string(read.body))
		body := fmt.Sprintf(`{"extensions":{"count":%v}}`, read.field("extensions", "count").(float64)+1)
		written := send(request{method: "PATCH", url: address, body: body, header: map[string]string{"If-Match": read.header.Get("ETag")}})
		if written.status == http.StatusOK {
			return
		}
		Expect(written.status).To(Equal(http.StatusPreconditionFailed), string(written.body))
	}
}

// countByObject adds one to the event's count, under its resourceVersion.
func countByObject(ctx context.Context, objects client.Client, key client.ObjectKey) error {
	patience := retry.DefaultRetry
	patience.Steps = 1000
	patience.Factor = 1
	return retry.RetryOnConflict(patience, func() error {
		event := &v1alpha1.WebhookEvent{}
		if err := objects.Get(ctx, key, event); err != nil {
			return err
		}
		extensions := map[string]any{}
		if err := json.Unmarshal(event.Spec.Extensions.Raw, &extensions); err != nil {
			return err
		}
		extensions["count"] = extensions["count"].(float64) + 1
		raw, err := json.Marshal(extensions)
		if err != nil {
			return err
		}
		event.Spec.Extensions.Raw = raw
		return objects.Update(ctx, event)
	})
}

var _ = Describe("Webhooks", func() {
	It("are created with a secret of their own, which is in a Secret and in no other answer", func(ctx SpecContext) {
		made := send(request{method: "POST", url: paddock.URLs[0] + hooksPath, body: `{"eventType":"product.created","webhookUrl":"https://example.org/hook","isActive":true}`})
		id := made.created("webhookId")
		secret := made.field("secret").(string)
		kubectl(ctx, "wait", "-n", "demo", "--for=condition=Accepted", "webhook/"+id, "--timeout=1m")
		name := kubectl(ctx, "get", "webhook", id, "-n", "demo", "-o", "jsonpath={.status.secretName}")
		Expect(kubectl(ctx, "get", "secret", name, "-n", "demo", "-o", `go-template={{.type}} {{.data.secret | base64decode}}`)).To(Equal("paddock.health/webhook " + secret))

		event := send(request{method: "POST", url: paddock.URLs[1] + eventsPath, body: `{"eventType":"product.created","isEnabled":true}`}).created("webhookEventId")
		kubectl(ctx, "wait", "-n", "demo", `--for=jsonpath={.status.conditions[?(@.type=="Active")].status}=True`, "webhook/"+id, "webhookevent/"+event, "--timeout=1m")

		rotated := send(request{method: "POST", url: paddock.URLs[1] + hooksPath + "/" + id + "/rotate-secret"})
		Expect(rotated.status).To(Equal(http.StatusOK), string(rotated.body))
		newer := kubectl(ctx, "get", "webhook", id, "-n", "demo", "-o", "jsonpath={.spec.secretRef.name} {.spec.previousSecret.name}")
		Expect(strings.Fields(newer)).To(And(HaveLen(2), HaveEach(HavePrefix(id)), ContainElement(name)))
		for _, path := range []string{hooksPath, hooksPath + "/" + id, eventsPath} {
			answer := everywhere(path)
			Expect(answer.status).To(Equal(http.StatusOK))
			Expect(string(answer.body)).NotTo(ContainSubstring("whsec_"))
		}
		Expect(send(request{method: "DELETE", url: paddock.URLs[0] + hooksPath + "/" + id}).status).To(Equal(http.StatusNoContent))
		Expect(send(request{method: "DELETE", url: paddock.URLs[0] + eventsPath + "/" + event}).status).To(Equal(http.StatusNoContent))
		Expect(kubectl(ctx, "get", "webhooks", id, "-n", "demo", "--ignore-not-found")).To(BeEmpty())
	})

	It("need rights in the site's namespace", func(ctx SpecContext) {
		apply(ctx, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: webhook-reader, namespace: demo}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: webhook-reader, namespace: demo}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-viewer}\nsubjects: [{kind: ServiceAccount, name: webhook-reader, namespace: demo}]\n")
		reader, err := paddock.Token(ctx, "demo", "webhook-reader", "paddock.health/demo/demo", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		for _, base := range paddock.URLs { // kube-apiserver learns of a new binding by and by, and refusals are remembered
			Eventually(func() int { return send(request{method: "GET", url: base + hooksPath, token: reader}).status }).Should(Equal(http.StatusOK))
		}
		refused := send(request{method: "POST", url: balanced + hooksPath, token: reader, body: `{"eventType":"user.created","webhookUrl":"https://example.org/","isActive":true}`})
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.field("detail")).To(ContainSubstring("create webhooks.paddock.health"))
	})
})
