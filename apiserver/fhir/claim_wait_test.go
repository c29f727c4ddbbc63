package fhir_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// roundTrip lets a spec come between an engine and the API server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// expiring is a context whose deadline a spec sets to now by closing over.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.over }

func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// writing is a store that keeps the Done channel of the context of its last write.
type writing struct {
	store.Store
	done atomic.Value // <-chan struct{}
}

func (w *writing) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	w.done.Store(ctx.Done())
	return w.Store.Write(ctx, ops)
}

// startEngine starts one more engine, as another replica has it.
func startEngine(config *rest.Config, options cluster.Options) *cluster.Cluster {
	GinkgoHelper()
	options.Extractor = extraction.Extractor{}
	engine, err := cluster.New(config, options)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go engine.Run(running)
	Eventually(engine.Synced()).WithTimeout(30 * time.Second).Should(BeClosed())
	return engine
}

var _ = Describe("A create under criteria that another one holds, which never ends", func() {
	It("takes too long, and is not refused, whenever its time is over", func(ctx context.Context) {
		asleep, awake := make(chan struct{}), make(chan struct{})
		wake := sync.OnceFunc(func() { close(awake) })
		DeferCleanup(wake)
		sleepy := startEngine(control.Config(), cluster.Options{AfterStep: func(step string) {
			if step == cluster.StepClaims {
				close(asleep)
				<-awake
			}
		}})
		hurried, refused := expiring{ctx, make(chan struct{})}, &writing{}
		var cleared atomic.Int64
		config := control.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				// The claim is refused, on the second attempt for good: now the time is over.
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/records/") && cleared.Add(1) == 2 {
					close(hurried.over)
					<-refused.done.Load().(<-chan struct{})
				}
				return next.RoundTrip(r)
			})
		})
		waiting := startEngine(config, cluster.Options{})

		data := newSite(ctx)
		namespace := strings.Split(data.base, "/")[4]
		first := newSite(ctx, func(s *fhir.Endpoint) {
			s.Store = gatetest.Everything(sleepy.Open(namespace, "key", cluster.DefaultLimits))
		})
		second := newSite(ctx, func(s *fhir.Endpoint) {
			refused.Store = waiting.Open(namespace, "key", cluster.DefaultLimits)
			s.Store = gatetest.Everything(refused)
		})
		created := make(chan answer, 1)
		go func() {
			defer GinkgoRecover()
			created <- first.do("POST", "/patient", chipped, with("If-None-Exist", "identifier=985"))
		}()
		Eventually(ctx, asleep).WithTimeout(30 * time.Second).Should(BeClosed())

		request := httptest.NewRequestWithContext(hurried, http.MethodPost, second.base+"/patient", strings.NewReader(chipped))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("If-None-Exist", "identifier=985")
		recorded := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(recorded, request)
		got := answer{recorded.Code, recorded.Header(), recorded.Body.String()}
		Expect(cleared.Load()).To(BeNumerically(">=", 2))
		Expect(got.status).To(Equal(http.StatusServiceUnavailable), got.body)
		Expect(got.code()).To(Equal("timeout"))
		Expect(got.header.Get("Retry-After")).NotTo(BeEmpty())

		wake()
		var winner answer
		Eventually(ctx, created).WithTimeout(30 * time.Second).Should(Receive(&winner))
		Expect(winner.status).To(Equal(http.StatusCreated))
	}, SpecTimeout(2*time.Minute))
})
