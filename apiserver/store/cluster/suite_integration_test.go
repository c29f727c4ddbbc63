package cluster_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// control is the control plane that the tests of this package share.
var control *localcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "paddock-store")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		ctx := context.Background()
		control, err = localcluster.Start(ctx, localcluster.Options{Dir: dir, UnsafeNoFsync: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = control.Stop() }()
		crds := filepath.Join("..", "..", "..", "config", "crd", "bases")
		if _, err := envtest.InstallCRDs(control.Config(), envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// newEngine starts an engine, as a replica of the API server does.
func newEngine(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	engine, err := cluster.New(control.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	go engine.Run(t.Context())
	select {
	case <-engine.Synced():
	case <-time.After(30 * time.Second):
		t.Fatal("the index was not built within 30 s")
	}
	return engine
}

// newSite returns a namespace and a key for the data of a site.
func newSite(t *testing.T) (namespace, key string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(control.Config())
	if err != nil {
		t.Fatal(err)
	}
	key = uuid.NewString()
	namespace = "clinic-" + key[:8]
	_, err = clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace, key
}

// withEvents is a site that implements storetest.EventReader.
type withEvents struct{ *cluster.Store }

// AcceptedEvents implements storetest.EventReader.
func (s withEvents) AcceptedEvents(ctx context.Context) ([]store.AcceptedEvent, error) {
	reader, err := newReader()
	if err != nil {
		return nil, err
	}
	found, err := pendingEvents(ctx, reader, s.Place().Namespace)
	events := slices.Concat(slices.Collect(maps.Values(found))...)
	slices.SortFunc(events, func(a, b store.AcceptedEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, err
}

func TestStore(t *testing.T) {
	first, second := newEngine(t, cluster.Options{Extractor: storetest.Extractor{}}), newEngine(t, cluster.Options{Extractor: storetest.Extractor{}})
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		namespace, key := newSite(t)
		return withEvents{first.Open(namespace, key, cluster.DefaultLimits)}, withEvents{second.Open(namespace, key, cluster.DefaultLimits)}
	})
}
