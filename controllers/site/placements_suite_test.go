package site_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// leaseName is the name of the Lease of the leader election.
const leaseName = "paddock-controller"

// leaseDuration and renewDeadline are longer than by default, so that a leader on a busy machine does not lose
// its Lease.
const leaseDuration, renewDeadline = time.Minute, 30 * time.Second

// watchLag is the delay of each part of a watch of SiteClaims. It is longer than a placement takes.
const watchLag = 2 * time.Second

var _ = Describe("Placements on the databases of a pool", func() {
	BeforeEach(func() {
		DeferCleanup(func(ctx context.Context) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: leaseName}}
			Expect(client.IgnoreNotFound(admin.Delete(ctx, lease))).To(Succeed())
		})
	})
	// newPool creates a SiteClass with one database. Its Secret is missing, so the Sites are placed and not served.
	newPool := func(ctx context.Context, name string, capacity int32) {
		GinkgoHelper()
		class := &v1alpha1.SiteClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		class.Spec.Storage = &v1alpha1.ClassStorage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.ClassPostgres{
			Pool: &v1alpha1.PostgresPool{Databases: []v1alpha1.PoolDatabase{{Name: "only", SecretRef: v1alpha1.DSNReference{Name: "missing"}, Capacity: &capacity}}},
		}}
		Expect(admin.Create(ctx, class)).To(Succeed())
	}
	createSites := func(ctx context.Context, class string, n int) []*v1alpha1.Site {
		GinkgoHelper()
		sites := make([]*v1alpha1.Site, n)
		for i := range sites {
			sites[i] = newSite(newNamespace(ctx), "oak", fmt.Sprintf("%s-%s", class, uuid.NewString()[:8]), v1alpha1.DeletionRetain)
			sites[i].Spec.ClassName = &class
			Expect(admin.Create(ctx, sites[i])).To(Succeed())
		}
		return sites
	}
	// verdicts returns how many of the Sites have each state of StorageReady.
	verdicts := func(ctx context.Context, sites []*v1alpha1.Site) (map[string]int, error) {
		counts := map[string]int{}
		for _, s := range sites {
			state, err := condition(s, v1alpha1.ConditionStorageReady)(ctx)
			if err != nil {
				return nil, err
			}
			counts[state]++
		}
		return counts, nil
	}
	const placed, unplaced = "False SecretNotFound", "False NoCapacity"

	It("count those of this process before the cache has them", func(ctx SpecContext) {
		newPool(ctx, "lagging", 3)
		startController(ctx, elected, lagging)
		sites := createSites(ctx, "lagging", 8)
		Eventually(verdicts).WithContext(ctx).WithTimeout(time.Minute).WithArguments(sites).Should(Equal(map[string]int{placed: 3, unplaced: 5}))
	})

	It("count those of a former leader before the cache has them", func(ctx SpecContext) {
		newPool(ctx, "inherited", 3)
		stop := startController(ctx, elected)
		first := createSites(ctx, "inherited", 2)
		startController(ctx, elected, lagging)
		first = append(first, createSites(ctx, "inherited", 1)...)
		Eventually(verdicts).WithContext(ctx).WithArguments(first).Should(Equal(map[string]int{placed: 3}))
		stop()
		later := createSites(ctx, "inherited", 2)
		Eventually(verdicts).WithContext(ctx).WithTimeout(time.Minute).WithArguments(later).Should(Equal(map[string]int{unplaced: 2}))
	})

	It("are not made by a process that is no longer the leader", func(ctx SpecContext) {
		newPool(ctx, "succeeded", 3)
		other := "successor"
		Expect(admin.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: leaseName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &other},
		})).To(Succeed())
		startController(ctx, elected, func(o *ctrl.Options) { o.LeaderElection = false }) // as if it had not noticed yet
		sites := createSites(ctx, "succeeded", 1)
		Eventually(condition(sites[0], v1alpha1.ConditionReconciling)).WithContext(ctx).Should(Equal("True Retrying"))
		Consistently(func(ctx context.Context) *v1alpha1.Placement {
			return get[v1alpha1.SiteClaim](ctx, "", sites[0].Spec.SiteID).Spec.Placement
		}).WithContext(ctx).WithTimeout(watchLag).Should(BeNil())
	})
})

// elected makes a controller reconcile only while it holds the Lease.
func elected(o *ctrl.Options) {
	GinkgoHelper()
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, operatorNamespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: uuid.NewString()}, controllerConfig, renewDeadline)
	Expect(err).NotTo(HaveOccurred())
	o.LeaderElection, o.LeaderElectionResourceLockInterface, o.LeaderElectionReleaseOnCancel = true, lock, true
	o.LeaseDuration, o.RenewDeadline = ptr.To(leaseDuration), ptr.To(renewDeadline)
}

// lagging delays the watch of SiteClaims, so that the controller's cache has their changes late.
func lagging(o *ctrl.Options) {
	o.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lag{next} })
		options.HTTPClient = nil // it has the transport of the other requests
		return cache.New(config, options)
	}
}

type lag struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l *lag) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/siteclaims") && r.URL.Query().Get("watch") != "" {
		response.Body = &lateBody{response.Body}
	}
	return response, err
}

type lateBody struct{ io.ReadCloser }

func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(watchLag)
	return n, err
}
