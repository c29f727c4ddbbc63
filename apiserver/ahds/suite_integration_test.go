package ahds_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/traffic"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

func TestAHDS(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "AHDS facade")
}

// replicas is how many servers the suite has, each with engines of its own.
const replicas = 2

var (
	clients kubernetes.Interface
	// controlPlane reaches the API server.
	controlPlane *rest.Config
	// objects are the etcd-backed engines of the servers, databases their pools.
	objects   [replicas]*cluster.Cluster
	databases [replicas]*pgxpool.Pool
	servers   [replicas]*httptest.Server
	// clockOffset moves the facade's clock.
	clockOffset atomic.Int64
	// openSites holds the sites of each server, by their siteID.
	openSites [replicas]sync.Map
)

var (
	firstKey, secondKey = []byte("0123456789abcdef0123456789abcdef"), []byte("fedcba9876543210fedcba9876543210")
	// holdKeys and feedKeys are the rings of all servers.
	holdKeys, feedKeys atomic.Pointer[[][]byte]
)

func init() {
	holdKeys.Store(&[][]byte{firstKey})
	feedKeys.Store(&[][]byte{firstKey})
}

// ended are the callers whose rights have ended.
var ended sync.Map

var _ = BeforeSuite(func(ctx SpecContext) {
	startCluster(ctx)
	startPostgres(ctx)
	for i := range servers {
		servers[i] = newServer(i)
	}
}, NodeTimeout(5*time.Minute))

func startCluster(ctx context.Context) {
	control, err := localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return control.Stop() })
	_, err = envtest.InstallCRDs(control.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred())
	controlPlane = control.Config()
	clients, err = kubernetes.NewForConfig(controlPlane)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
	for i := range objects {
		objects[i], err = cluster.New(control.Config(), cluster.Options{Extractor: extraction.Extractor{}})
		Expect(err).NotTo(HaveOccurred())
		ended.Go(func() { objects[i].Run(running) })
		Eventually(objects[i].Synced()).WithTimeout(30 * time.Second).Should(BeClosed())
	}
}

func startPostgres(ctx context.Context) {
	dir, err := os.MkdirTemp("", "paddock-ahds") // GinkgoT().TempDir is root's alone, and root cannot run the server
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	Expect(err).NotTo(HaveOccurred())
	_, err = schema.Migrate(ctx, conn)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close(ctx)).To(Succeed())
	for i := range databases {
		databases[i], err = postgres.Connect(context.WithoutCancel(ctx), server.URL("postgres"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(databases[i].Close)
	}
}

// newServer serves the sites of one replica.
func newServer(replica int) *httptest.Server {
	server := httptest.NewServer(newHandler(replica, ahds.Streams{}))
	DeferCleanup(server.Close)
	return server
}

func newHandler(replica int, streams ahds.Streams) http.Handler {
	handler, err := ahds.New(newConfig(replica, streams))
	Expect(err).NotTo(HaveOccurred())
	return handler
}

// newConfig is the configuration of one replica.
func newConfig(replica int, streams ahds.Streams) ahds.Config {
	find := func(_ *http.Request, siteID string) (ahds.DataStore, error) {
		site, ok := openSites[replica].Load(siteID)
		if !ok {
			return ahds.DataStore{}, access.ErrSiteHidden
		}
		return site.(ahds.DataStore), nil
	}
	return ahds.Config{
		Admit: func(r *http.Request, siteID string) (ahds.DataStore, access.Caller, error) {
			if r.Header.Get("X-Caller") == "nobody" {
				return ahds.DataStore{}, access.Caller{}, &access.TokenError{Description: "the request has no bearer token"}
			}
			site, err := find(r, siteID)
			return site, access.Caller{Name: r.Header.Get("X-Caller")}, err
		},
		Find:       find,
		Authorizer: rights{},
		HoldKeys:   func() [][]byte { return *holdKeys.Load() },
		FeedKeys:   func() [][]byte { return *feedKeys.Load() },
		Cursors:    cursors{},
		Traffic:    requests.Report,
		Streams:    streams,
		Log:        slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
		Now:        now,
	}
}

// requests are the figures of requests of the servers, to which tests add.
var requests = traffic.New("server-1", now)

// now is the clock of the servers and of their engines.
func now() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }

// rights lets everybody do everything, but for callers named after a verb, who may not do
// that, one who may only act on the object called oak, and strangers, who may do nothing.
type rights struct{}

func (rights) Authorize(_ context.Context, caller access.Caller, _ access.Tenant, action access.Action) error {
	if action.Group != ahds.Group && action.Group != ahds.ResourceGroup {
		return &access.ForbiddenError{Caller: caller.Name, Action: action}
	}
	if _, gone := ended.Load(caller.Name); gone {
		return &access.ForbiddenError{Caller: caller.Name, Action: action}
	}
	switch caller.Name {
	case "stranger", "no-" + action.Verb:
		return &access.ForbiddenError{Caller: caller.Name, Action: action}
	case "only-oak":
		if action.Name == "oak" {
			return nil
		}
		return &access.ForbiddenError{Caller: caller.Name, Action: action}
	default:
		return nil
	}
}

// engines are the kinds of storage that a site can have.
var engines = []string{"Cluster", "Postgres"}

// onBoth describes what holds on either engine.
func onBoth(text string, body func(newSite func(ctx context.Context, wrap ...wrapper) site)) {
	for _, engine := range engines {
		Describe(text+" (storage: "+engine+")", func() {
			body(func(ctx context.Context, wrap ...wrapper) site {
				GinkgoHelper()
				return newSite(ctx, engine, wrap...)
			})
		})
	}
}

// wrapper puts something between a server and its store.
type wrapper func(replica int, s store.Store) store.Store

// site is one site and the addresses to reach it, one for each server.
type site struct {
	id     string
	bases  [replicas]string
	stores [replicas]store.Store
}

// newSite opens a site with storage of its own.
func newSite(ctx context.Context, engine string, wrap ...wrapper) site {
	GinkgoHelper()
	key := uuid.NewString()
	s := site{id: "clinic-" + key[:8]}
	if engine == "Cluster" {
		_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.id}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for i := range replicas {
		s.stores[i] = openStore(ctx, engine, i, s.id, key)
		for _, w := range wrap {
			s.stores[i] = w(i, s.stores[i])
		}
		s.bases[i] = servers[i].URL + "/site/" + s.id + "/ahds/v1"
		openSites[i].Store(s.id, ahds.DataStore{
			Settings: settings.Settings{ID: s.id}, BaseURL: s.bases[i], Store: gatetest.Everything(noRecords{s.stores[i]}), Events: newSource(s.id),
		})
		DeferCleanup(func() { openSites[i].Delete(s.id) })
	}
	return s
}

// setLimits sets the limits of the site on all servers.
func (s site) setLimits(limits v1alpha1.Limits) {
	for i := range replicas {
		opened, _ := openSites[i].Load(s.id)
		changed := opened.(ahds.DataStore)
		changed.Limits = limits
		openSites[i].Store(s.id, changed)
	}
}

func openStore(ctx context.Context, engine string, replica int, namespace, key string) store.Store {
	GinkgoHelper()
	if engine == "Cluster" {
		return objects[replica].Open(namespace, key, cluster.DefaultLimits)
	}
	records, err := postgres.Open(context.WithoutCancel(ctx), databases[replica], key, postgres.Options{Extractor: extraction.Extractor{}})
	Expect(err).NotTo(HaveOccurred())
	return records
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// option changes a request before it is sent.
type option func(*http.Request)

func with(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// do sends a request to the first server.
func (s site) do(method, path, body string, options ...option) answer {
	GinkgoHelper()
	a, err := s.send(0, method, path, body, options...)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// send sends a request to a path below the site's base on a server.
func (s site) send(replica int, method, path, body string, options ...option) (answer, error) {
	address := path
	if !strings.HasPrefix(path, "http") {
		address = s.bases[replica] + path
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, change := range options {
		change(r)
	}
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// client keeps connections for as many requests as race.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}

// document is a JSON object.
type document map[string]any

func (a answer) json() document {
	GinkgoHelper()
	var d document
	Expect(json.Unmarshal([]byte(a.body), &d)).To(Succeed(), a.body)
	return d
}

// decode reads the answer into a value.
func (a answer) decode(into any) {
	GinkgoHelper()
	Expect(json.Unmarshal([]byte(a.body), into)).To(Succeed(), a.body)
}

// text is a string member of the answer.
func (a answer) text(name string) string {
	GinkgoHelper()
	text, ok := a.json()[name].(string)
	Expect(ok).To(BeTrue(), "no string %s in %s", name, a.body)
	return text
}

// errs returns the errors of a problem as location and code.
func (a answer) errs() []string {
	GinkgoHelper()
	Expect(a.header.Get("Content-Type")).To(Equal("application/problem+json"), a.body)
	var said []string
	list, _ := a.json()["errors"].([]any)
	for _, each := range list {
		fault := each.(map[string]any)
		for _, place := range []string{"pointer", "parameter", "header"} {
			if at, ok := fault[place]; ok {
				said = append(said, place+" "+at.(string)+" "+fault["code"].(string))
			}
		}
		Expect(fault["detail"]).NotTo(BeEmpty())
	}
	return said
}

// created expects that a request created something, and returns its id.
func (a answer) created(idField string) string {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusCreated), a.body)
	return a.text(idField)
}

// ids of the records of a list.
func (a answer) ids(idField string) []string {
	GinkgoHelper()
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	ids := []string{}
	for _, each := range a.json()["data"].([]any) {
		ids = append(ids, each.(map[string]any)[idField].(string))
	}
	return ids
}
