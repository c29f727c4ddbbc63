package clients_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// recorder is a proxy between the clients and the API server. It records what each update sent and
// which version it led to, independently of what a client reports.
type recorder struct {
	address string

	mu    sync.Mutex
	proxy *httputil.ReverseProxy
	found recording
	// latest is the version of each record that was seen last, by the record's path.
	latest map[string]version
}

// recording is what a recorder saw since the last call of take.
type recording struct {
	requests int
	updates  []update
	err      error
}

// version is a version of a record: its number and its value, as parse returns it.
type version struct {
	number int
	value  map[string]any
}

// update is a successful PUT of a record that a client had read or written before.
type update struct {
	// reference is type and id.
	reference     string
	before, after int
	// diff is what the body changed of the JSON value that was stored. It is empty if they are equal.
	diff string
}

func (u update) same() bool { return u.diff == "" }

// recordPath matches the path of a record of a site.
var recordPath = regexp.MustCompile(`^/site/[^/]+/fhir/([A-Za-z]+/[A-Za-z0-9.-]+)$`)

// startRecorder serves a recorder. It needs a call of forwardTo before the first request.
func startRecorder() *recorder {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	r := &recorder{address: "http://" + listener.Addr().String(), latest: map[string]version{}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: r}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return r
}

// forwardTo sets the address of the API server.
func (r *recorder) forwardTo(address string) {
	target, err := url.Parse(address)
	Expect(err).NotTo(HaveOccurred())
	r.proxy = &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(target) }}
}

// take returns what was recorded since the last call.
func (r *recorder) take() recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.found
	r.found = recording{}
	return taken
}

// ServeHTTP forwards one request at a time.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(sent))
	method, path := request.Method, request.URL.Path
	answer := httptest.NewRecorder()
	r.proxy.ServeHTTP(answer, request)
	r.found.requests++
	if record := recordPath.FindStringSubmatch(path); record != nil && answer.Code < http.StatusMultipleChoices {
		if err := r.note(method, path, record[1], sent, answer); err != nil && r.found.err == nil {
			r.found.err = fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// note records a successful request for a record.
func (r *recorder) note(method, path, reference string, sent []byte, answer *httptest.ResponseRecorder) error {
	if method != http.MethodGet && method != http.MethodPut {
		delete(r.latest, path)
		return nil
	}
	var now version
	var err error
	if now.number, err = strconv.Atoi(strings.Trim(answer.Header().Get("ETag"), `W/"`)); err != nil {
		return fmt.Errorf("read the ETag: %w", err)
	}
	body, err := decoded(answer)
	if err != nil {
		return err
	}
	if now.value, err = parse(body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if before, known := r.latest[path]; known && method == http.MethodPut {
		wanted, err := parse(sent)
		if err != nil {
			return fmt.Errorf("read the request: %w", err)
		}
		if !reflect.DeepEqual(now.value, wanted) {
			return fmt.Errorf("%s was sent and %s was answered", sent, body)
		}
		r.found.updates = append(r.found.updates, update{
			reference: reference, before: before.number, after: now.number, diff: cmp.Diff(before.value, wanted),
		})
	}
	r.latest[path] = now
	return nil
}

// decoded returns the body of an answer.
func decoded(answer *httptest.ResponseRecorder) ([]byte, error) {
	if answer.Header().Get("Content-Encoding") != "gzip" {
		return answer.Body.Bytes(), nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(answer.Body.Bytes()))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
