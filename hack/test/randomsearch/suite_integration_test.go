package randomsearch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// engines open an empty store.
var engines = map[string]func(*testing.T) store.Store{"cluster": openCluster, "postgres": openPostgres}

// openCluster opens a store on a control plane of its own.
func openCluster(t *testing.T) store.Store {
	ctx := t.Context()
	control, err := localcluster.Start(ctx, localcluster.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Stop() })
	crds := filepath.Join("..", "..", "..", "config", "crd", "bases")
	if _, err := envtest.InstallCRDs(control.Config(), envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true, MaxTime: time.Minute}); err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(control.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clinic"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	engine, err := cluster.New(control.Config(), cluster.Options{Extractor: extraction.Extractor{}})
	if err != nil {
		t.Fatal(err)
	}
	go engine.Run(ctx)
	select {
	case <-engine.Synced():
	case <-time.After(2 * time.Minute):
		t.Fatal("the index was not built within 2 min")
	}
	return engine.Open("clinic", uuid.NewString(), cluster.DefaultLimits)
}

// openPostgres opens a store in a database of its own.
func openPostgres(t *testing.T) store.Store {
	ctx := t.Context()
	dir, err := os.MkdirTemp("", "paddock-search") // a folder within t.TempDir is root's alone, and root cannot run the server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := schema.Migrate(ctx, conn); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Connect(ctx, server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	records, err := postgres.Open(ctx, pool, uuid.NewString(), postgres.Options{Extractor: manyFacets{}})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// manyFacets has more facets than the server: most parameters that have few codes.
type manyFacets struct{ extraction.Extractor }

func (manyFacets) IsFacet(param string) bool {
	return param == "gender" || param == "active" || param == "deceased" || param == "address-use" || param == "status"
}
