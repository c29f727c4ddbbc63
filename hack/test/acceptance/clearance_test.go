package acceptance

import (
	"net/http"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var _ = Describe("The clearance of a Webhook", func() {
	It("is given by callers with the verb privileged on all types, through either door", func(ctx SpecContext) {
		apply(ctx, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: demo, name: clearance-editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: clearance-editor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: demo, name: clearance-chief}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: clearance-chief}]`)
		as := func(user string) client.Client {
			GinkgoHelper()
			awaitRight(ctx, user, authorizationv1.ResourceAttributes{Namespace: "demo", Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "webhooks"})
			config, err := cluster.UserConfig(user, "system:authenticated")
			Expect(err).NotTo(HaveOccurred())
			scheme := runtime.NewScheme()
			Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
			objects, err := client.New(config, client.Options{Scheme: scheme})
			Expect(err).NotTo(HaveOccurred())
			return objects
		}
		editor, chief := as("clearance-editor"), as("clearance-chief")
		active := false
		hook := func(clearance v1alpha1.Clearance) *v1alpha1.Webhook {
			return &v1alpha1.Webhook{
				ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "clearance-" + uuid.NewString()[:8]},
				Spec:       v1alpha1.WebhookSpec{EventType: "user.created", URL: "https://example.org/hook", Active: &active, Clearance: clearance},
			}
		}
		refuse := func(err error) {
			GinkgoHelper()
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("needs the verb privileged on ")))
		}
		refuse(editor.Create(ctx, hook(v1alpha1.ClearancePrivileged)))
		Expect(chief.Create(ctx, hook(v1alpha1.ClearancePrivileged))).To(Succeed())

		plain := hook("")
		Eventually(func() error { return editor.Create(ctx, plain) }).Should(Succeed())
		Expect(plain.Spec.Clearance).To(Equal(v1alpha1.ClearanceNormal))
		change := func(by client.Client, edit func(*v1alpha1.Webhook)) error {
			changed := plain.DeepCopy()
			edit(changed)
			return by.Patch(ctx, changed, client.MergeFrom(plain))
		}
		raise := func(w *v1alpha1.Webhook) { w.Spec.Clearance = v1alpha1.ClearancePrivileged }
		refuse(change(editor, raise))
		Expect(change(chief, raise)).To(Succeed())
		Expect(chief.Get(ctx, client.ObjectKeyFromObject(plain), plain)).To(Succeed())
		Expect(plain.Spec.Clearance).To(Equal(v1alpha1.ClearancePrivileged))

		By("what a privileged Webhook sends goes where privileged callers say")
		refuse(change(editor, func(w *v1alpha1.Webhook) { w.Spec.URL = "https://example.org/elsewhere" }))
		Expect(change(editor, func(w *v1alpha1.Webhook) { w.Labels = map[string]string{"a": "b"} })).To(Succeed())
		Expect(change(editor, func(w *v1alpha1.Webhook) {
			w.Spec.Clearance, w.Spec.URL = v1alpha1.ClearanceNormal, "https://example.org/elsewhere"
		})).To(Succeed())
		Expect(editor.Delete(ctx, plain)).To(Succeed())

		By("and REST says which right is missing")
		answer := send(request{method: "POST", url: paddock.URLs[0] + hooksPath, body: `{"eventType":"user.created","webhookUrl":"https://example.org/hook","isActive":false,"clearance":"privileged"}`})
		Expect(answer.status).To(Equal(http.StatusForbidden), string(answer.body))
		Expect(string(answer.body)).To(ContainSubstring("privileged"))
	})

	It("does not keep editors from sending events and reading their types", func() {
		answer := send(request{method: "POST", url: paddock.URLs[0] + "/site/demo/ahds/v1/event", body: `{"type":"user.created","data":{}}`})
		Expect(answer.status).To(Equal(http.StatusAccepted), string(answer.body))
		Expect(send(request{method: "GET", url: paddock.URLs[0] + "/site/demo/ahds/v1/event-type"}).status).To(Equal(http.StatusOK))
	})
})
