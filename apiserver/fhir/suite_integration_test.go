package fhir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

func TestFHIR(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "FHIR facade")
}

var (
	control *localcluster.Cluster
	clients kubernetes.Interface
	engine  *cluster.Cluster
	// server is the facade of all sites of the suite.
	server *httptest.Server
	// clockOffset moves the facade's clock.
	clockOffset atomic.Int64
	openSites   sync.Map // siteID → fhir.Endpoint
	// views is how callers see a site, by siteID: func(*http.Request, *fhir.Endpoint) access.Caller
	// changes the site for a request. Callers of other sites see everything.
	views sync.Map
)

// restrictNurse makes the caller nurse of a site one without the right to records that are confidential. The
// header X-Caller names the caller.
func restrictNurse(s site) {
	views.Store(s.id, func(r *http.Request, at *fhir.Endpoint) access.Caller {
		caller := access.Caller{Name: r.Header.Get("X-Caller")}
		if caller.Name == "nurse" {
			at.Store = gatetest.Open(s.raw, &privacy.View{
				Rules: &privacy.Rules{}, Caller: caller, Reads: gatetest.Reads,
				Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, nil },
			}, at.BaseURL)
		}
		return caller
	})
	DeferCleanup(func() { views.Delete(s.id) })
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	control, err = localcluster.Start(ctx, localcluster.Options{Dir: GinkgoT().TempDir(), UnsafeNoFsync: true, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return control.Stop() })
	_, err = envtest.InstallCRDs(control.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred())
	clients, err = kubernetes.NewForConfig(control.Config())
	Expect(err).NotTo(HaveOccurred())

	engine, err = cluster.New(control.Config(), cluster.Options{Extractor: extraction.Extractor{}})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		engine.Run(running)
	}()
	DeferCleanup(func() {
		stop()
		<-ended
	})
	Eventually(engine.Synced()).WithTimeout(30 * time.Second).Should(BeClosed())

	handler, err := fhir.New(fhir.Config{
		Admit:      admit,
		Find:       find,
		Authorizer: rights{},
		TokenKeys:  keyring.Fixed(make([]byte, 32)),
		Version:    "v0-test",
		Log:        slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
		Now:        func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) },
	})
	Expect(err).NotTo(HaveOccurred())
	server = httptest.NewServer(handler)
	DeferCleanup(server.Close)
})

// admit authenticates the caller that the X-Caller header names.
func admit(r *http.Request, siteID string) (fhir.Endpoint, access.Caller, error) {
	site, ok := openSites.Load(siteID)
	if !ok {
		return fhir.Endpoint{}, access.Caller{}, access.ErrSiteHidden
	}
	opened := site.(fhir.Endpoint)
	if view, ok := views.Load(siteID); ok {
		caller := view.(func(*http.Request, *fhir.Endpoint) access.Caller)(r, &opened)
		return opened, caller, nil
	}
	return opened, access.Caller{Name: r.Header.Get("X-Caller")}, nil
}

// find finds the site of a request without a token.
func find(_ *http.Request, siteID string) (fhir.Endpoint, error) {
	site, ok := openSites.Load(siteID)
	if !ok {
		return fhir.Endpoint{}, access.ErrSiteHidden
	}
	return site.(fhir.Endpoint), nil
}

// rights permits everything, except to callers named after a right. "no-" and a verb lacks that
// verb. "lists" or "reads" and some resources may list, or list and get, no other resources.
type rights struct{}

// asked counts the authorizations of each caller.
var asked sync.Map

func (rights) Authorize(_ context.Context, caller access.Caller, _ access.Tenant, action access.Action) error {
	count, _ := asked.LoadOrStore(caller.Name, new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	kind, resources, some := strings.Cut(caller.Name, " ")
	narrowed := map[string][]string{"lists": {"list"}, "reads": {"list", "get"}}[kind]
	if caller.Name == "no-"+action.Verb || some && slices.Contains(narrowed, action.Verb) && !slices.Contains(strings.Fields(resources), action.Resource) {
		return &access.ForbiddenError{Caller: caller.Name, Action: action}
	}
	return nil
}

// site is one site of the server and the address to reach it.
type site struct {
	id    string
	base  string
	store store.Store
	// raw is the store behind the gate.
	raw store.Store
}

// newSite opens a site with a namespace of its own.
func newSite(ctx context.Context, changes ...func(*fhir.Endpoint)) site {
	GinkgoHelper()
	return newLimitedSite(ctx, cluster.DefaultLimits, changes...)
}

// newLimitedSite is newSite with limits on what the site may store.
func newLimitedSite(ctx context.Context, limits cluster.Limits, changes ...func(*fhir.Endpoint)) site {
	GinkgoHelper()
	key := uuid.NewString()
	name := "clinic-" + key[:8]
	_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	raw := engine.Open(name, key, limits)
	s := fhir.Endpoint{
		Settings: settings.Settings{ID: name, UpdateCreate: true},
		BaseURL:  server.URL + "/site/" + name + "/fhir", Store: gatetest.Everything(raw),
	}
	for _, change := range changes {
		change(&s)
	}
	openSites.Store(name, s)
	DeferCleanup(func() { openSites.Delete(name) })
	return site{id: name, base: s.BaseURL, store: s.Store, raw: raw}
}

// answer is a response that was read to its end.
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

var (
	acceptFHIR = with("Accept", "application/fhir+json")
	sendFHIR   = with("Content-Type", "application/fhir+json")
	// segments are the spellings of one type.
	segments = []string{"patient", "Patient"}
)

// do sends a request to a path below the site's base, or to an absolute address.
func (s site) do(method, path, body string, options ...option) answer {
	GinkgoHelper()
	address := path
	if !strings.HasPrefix(path, "http") {
		address = s.base + path
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, change := range options {
		change(r)
	}
	res, err := server.Client().Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{res.StatusCode, res.Header, string(text)}
}

// put writes a resource and expects that to succeed.
func (s site) put(path, body string) answer {
	GinkgoHelper()
	a := s.do(http.MethodPut, path, body)
	Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.body)
	return a
}

// document is a JSON object.
type document map[string]any

func (a answer) json() document {
	GinkgoHelper()
	var d document
	Expect(json.Unmarshal([]byte(a.body), &d)).To(Succeed(), a.body)
	return d
}

// code of the first issue of an OperationOutcome.
func (a answer) code() string {
	GinkgoHelper()
	d := a.json()
	Expect(d).To(HaveKeyWithValue("resourceType", "OperationOutcome"))
	return d.at("issue", 0, "details", "coding", 0, "code").(string)
}

// at walks into a document by names and indices; nil where there is nothing.
func (d document) at(path ...any) any {
	var value any = map[string]any(d)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			array, _ := value.([]any)
			if step >= len(array) {
				return nil
			}
			value = array[step]
		}
	}
	return value
}

// entries of a bundle.
func (d document) entries() []document {
	list, _ := d["entry"].([]any)
	found := make([]document, len(list))
	for i, each := range list {
		found[i] = each.(map[string]any)
	}
	return found
}

// ids of the resources in a bundle.
func (d document) ids() []string {
	found := []string{}
	for _, entry := range d.entries() {
		found = append(found, fmt.Sprint(entry.at("resource", "id")))
	}
	return found
}

// link of a bundle, empty when there is none.
func (d document) link(relation string) string {
	list, _ := d["link"].([]any)
	for _, each := range list {
		if l := document(each.(map[string]any)); l["relation"] == relation {
			return l["url"].(string)
		}
	}
	return ""
}
