package site_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/certificate"
	"github.com/paddock-health/paddock/controllers/site"
	"github.com/paddock-health/paddock/controllers/site/provision"
	"github.com/paddock-health/paddock/hack/dev/freeport"
)

// webhookConfiguration is that of config/default, of a server on this machine.
func webhookConfiguration(port int) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	text, err := os.ReadFile("../../config/default/webhook.yaml")
	Expect(err).NotTo(HaveOccurred())
	manifests := strings.Split(string(text), "\n---\n")
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(yaml.UnmarshalStrict([]byte(manifests[len(manifests)-1]), configuration)).To(Succeed())
	Expect(configuration.Webhooks).To(HaveLen(1))
	config := &configuration.Webhooks[0].ClientConfig
	address := fmt.Sprintf("https://localhost:%d%s", port, *config.Service.Path)
	config.Service, config.URL = nil, &address
	configuration.Webhooks[0].TimeoutSeconds = ptr.To[int32](30) // later, kube-apiserver goes on without an answer
	return configuration
}

// startWebhook runs the webhook server as a controller that does not lead would, and makes
// kube-apiserver ask it.
func startWebhook(ctx context.Context) (stop func()) {
	GinkgoHelper()
	ports, err := freeport.Choose(1)
	Expect(err).NotTo(HaveOccurred())
	port := ports[0]

	configuration := webhookConfiguration(port)
	Expect(admin.Create(ctx, configuration)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, configuration)).To(Succeed()) })
	who := clientOf(controllerUser)
	const secret = "paddock-controller-tls"
	keeper := &certificate.Keeper{
		Client: who, Live: who, Namespace: operatorNamespace, Authority: "paddock-authority", Now: time.Now,
		Serving: []certificate.Serving{{Secret: secret, DNSNames: []string{"localhost"}, ValidatingWebhooks: configuration.Name}},
	}
	Expect(keeper.Keep(ctx)).To(Succeed())

	source := &certificate.Source{Live: who, Secret: client.ObjectKey{Namespace: operatorNamespace, Name: secret}, Now: time.Now}
	mgr, err := ctrl.NewManager(controllerConfig, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: "127.0.0.1", Port: port,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = source.GetCertificate }},
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&site.Validator{Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Namespace: operatorNamespace}).SetupWithManager(mgr)).To(Succeed())
	running, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	DeferCleanup(stop)
	return stop
}

// heard keeps the warnings of kube-apiserver.
type heard struct{ warnings []string }

func (h *heard) HandleWarningHeader(_ int, _, text string) { h.warnings = append(h.warnings, text) }

// beInvalid is an answer that refuses a field for a reason.
func beInvalid(reason, field string) OmegaMatcher {
	return And(
		MatchError(apierrors.IsInvalid, "an error of status 422"),
		WithTransform(func(err error) []metav1.StatusCause {
			if status, ok := err.(apierrors.APIStatus); ok {
				return status.Status().Details.Causes
			}
			return nil
		}, ConsistOf(And(HaveField("Type", metav1.CauseType(reason)), HaveField("Field", field)))),
	)
}

var _ = Describe("A Site, as it is applied", Ordered, func() {
	var (
		holder, waiting *v1alpha1.Site
		stop            func()
		applied         heard
		user            client.Client
	)
	BeforeAll(func(ctx SpecContext) {
		startController(ctx)
		holder = createSite(ctx, newNamespace(ctx), "oak", "asked-for")
		expectReady(ctx, holder)
		waiting = newSite(newNamespace(ctx), "late", "asked-for", v1alpha1.DeletionDelete)
		Expect(admin.Create(ctx, waiting)).To(Succeed())
		expectRefused(ctx, waiting, v1alpha1.ReasonSiteIDTaken)

		stop = startWebhook(ctx)
		config := rest.CopyConfig(cluster.Config())
		config.WarningHandler = &applied
		var err error
		user, err = client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(ctx context.Context) error {
			return user.Create(ctx, newSite(holder.Namespace, "elm", "elm", v1alpha1.DeletionRetain), client.DryRunAll)
		}).WithContext(ctx).ShouldNot(Succeed(), "kube-apiserver asks the webhook")
	}, NodeTimeout(3*time.Minute))
	BeforeEach(func() { applied.warnings = nil })

	create := func(ctx context.Context, s *v1alpha1.Site) error { return user.Create(ctx, s, client.DryRunAll) }
	inPostgres := func(namespace string, postgres *v1alpha1.PostgresStorage) *v1alpha1.Site {
		s := newSite(namespace, "oak", namespace, v1alpha1.DeletionRetain)
		s.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: postgres}
		return s
	}
	provisioned := func(namespace string, engine v1alpha1.PostgresEngine, version string) *v1alpha1.Site {
		return inPostgres(namespace, &v1alpha1.PostgresStorage{Provisioned: &v1alpha1.ProvisionedPostgres{
			Engine: engine, Version: version, Storage: v1alpha1.Volume{Size: ptr.To(resource.MustParse("1Gi"))},
		}})
	}

	It("is refused where another Site is", func(ctx SpecContext) {
		err := create(ctx, newSite(holder.Namespace, "elm", "elm", v1alpha1.DeletionRetain))
		Expect(err).To(beInvalid("NamespaceOccupied", "metadata.namespace"))
		Expect(err).NotTo(MatchError(ContainSubstring("oak")), "whose it is")
		Expect(applied.warnings).To(BeEmpty())
	})

	It("is refused a siteID that another holds", func(ctx SpecContext) {
		elsewhere := newNamespace(ctx)
		err := create(ctx, newSite(elsewhere, "oak", "asked-for", v1alpha1.DeletionRetain))
		Expect(err).To(beInvalid("SiteIDTaken", "spec.siteID"))
		Expect(err).NotTo(MatchError(ContainSubstring(holder.Namespace)), "whose it is")
		Expect(create(ctx, newSite(elsewhere, "asked-for", "", v1alpha1.DeletionRetain))).To(beInvalid("SiteIDTaken", "metadata.name"))
		Expect(create(ctx, newSite(elsewhere, "oak", "asked-for-too", v1alpha1.DeletionRetain))).To(Succeed())
		Expect(applied.warnings).To(BeEmpty())
	})

	It("goes on to be changed and deleted where it had got past", func(ctx SpecContext) {
		update(ctx, waiting.Namespace, waiting.Name, func(s *v1alpha1.Site) { s.Labels = map[string]string{"team": "oak"} })
		update(ctx, waiting.Namespace, waiting.Name, func(s *v1alpha1.Site) { s.Spec.DisplayName = "Late" })
		deleteAndWait(ctx, waiting)
	})

	It("is told of a Secret that may be yet to come", func(ctx SpecContext) {
		external := func(name string) *v1alpha1.PostgresStorage {
			return &v1alpha1.PostgresStorage{External: &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: name, Key: "uri"}}}
		}
		s := inPostgres(newNamespace(ctx), external("oak-db"))
		Expect(user.Create(ctx, s)).To(Succeed())
		Expect(applied.warnings).To(ConsistOf(ContainSubstring("spec.storage.postgres.external.secretRef: SecretNotFound: There is no Secret \"oak-db\"")))

		By("and of one that is another's")
		applied.warnings = nil
		opaque := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "opaque"}}
		Expect(admin.Create(ctx, opaque)).To(Succeed())
		patch := client.MergeFrom(s.DeepCopy())
		s.Spec.Storage.Postgres = external("opaque")
		Expect(user.Patch(ctx, s, patch)).To(Succeed())
		Expect(applied.warnings).To(ConsistOf(ContainSubstring(`There is no Secret "opaque" of type paddock.health/dsn`)))

		By("and of nothing once it is there")
		applied.warnings = nil
		there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "oak-db"}, Type: v1alpha1.SecretTypeDSN}
		Expect(admin.Create(ctx, there)).To(Succeed())
		patch = client.MergeFrom(s.DeepCopy())
		s.Spec.Storage.Postgres = external("oak-db")
		Expect(user.Patch(ctx, s, patch)).To(Succeed())
		Expect(applied.warnings).To(BeEmpty())
	})

	It("is refused another major version than that of its data", func(ctx SpecContext) {
		s := provisioned(newNamespace(ctx), v1alpha1.EngineStatefulSet, "18")
		volume := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: provision.Name, Annotations: map[string]string{provision.MajorAnnotation: "17"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		Expect(create(ctx, s.DeepCopy())).To(Succeed())
		Expect(admin.Create(ctx, volume)).To(Succeed())
		Expect(create(ctx, s.DeepCopy())).To(beInvalid("MajorUpgrade", "spec.storage.postgres.provisioned.version"))
		Expect(applied.warnings).To(BeEmpty())

		By("and warned of data of another key")
		update(ctx, s.Namespace, provision.Name, func(c *corev1.PersistentVolumeClaim) {
			c.Labels = map[string]string{v1alpha1.SiteKeyLabel: "another"}
		})
		Expect(create(ctx, s.DeepCopy())).To(Succeed())
		Expect(applied.warnings).To(ConsistOf(ContainSubstring("ForeignRecords")))
	})

	It("is warned of records of another key", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		createRecord(ctx, namespace, "another", "patient.1")
		Expect(create(ctx, newSite(namespace, "oak", namespace, v1alpha1.DeletionRetain))).To(Succeed())
		Expect(applied.warnings).To(ConsistOf(ContainSubstring("spec.storage: ForeignRecords")))
	})

	It("is told of an operator that may be yet to come", func(ctx SpecContext) {
		_, err := admin.RESTMapper().RESTMapping(provision.ClusterKind.GroupKind(), provision.ClusterKind.Version)
		Expect(create(ctx, provisioned(newNamespace(ctx), v1alpha1.EngineCloudNativePG, "17"))).To(Succeed())
		if err == nil { // by another spec of the suite
			Expect(applied.warnings).To(BeEmpty())
			return
		}
		Expect(applied.warnings).To(ConsistOf(ContainSubstring("spec.storage.postgres.provisioned.engine: EngineMissing")))
	})

	It("is the same Site again where there is data of it, and no other", func(ctx SpecContext) {
		deleteAndWait(ctx, holder)
		Expect(create(ctx, newSite(holder.Namespace, "oak", "asked-for", v1alpha1.DeletionRetain))).To(Succeed())
		Expect(create(ctx, newSite(holder.Namespace, "elm", "asked-for", v1alpha1.DeletionRetain))).To(beInvalid("NamespaceOccupied", "metadata.namespace"))
		Expect(create(ctx, newSite(newNamespace(ctx), "oak", "asked-for", v1alpha1.DeletionRetain))).To(beInvalid("SiteIDTaken", "spec.siteID"))
	})

	It("is taken where nobody answers, and refused later", func(ctx SpecContext) {
		stop()
		s := newSite(newNamespace(ctx), "oak", "asked-for", v1alpha1.DeletionRetain)
		Expect(user.Create(ctx, s)).To(Succeed())
		expectRefused(ctx, s, v1alpha1.ReasonSiteIDTaken)
	})
})
