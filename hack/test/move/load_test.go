package move

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	patients = "/site/demo/fhir/patient"
	writers  = 6
	readers  = 3
	// perWriter is the number of records that each writer changes.
	perWriter = 5
)

// pauseBetween is the time between two requests of a writer or reader. The short form has some hundred requests a
// second: more would only take processor time from tests that run at the same time.
func pauseBetween() time.Duration {
	if *full {
		return 5 * time.Millisecond
	}
	return 30 * time.Millisecond
}

// lastStart is when programs were last started again, in milliseconds since 1970. Within startTime
// they can refuse reads.
var lastStart atomic.Int64

const startTime = 30 * time.Second

// asleep reports whether the second API server sleeps, or has not seen a switch during its sleep yet. Until
// it sees the switch, it reads from the former storage.
var asleep atomic.Bool

type response struct {
	status int
	header http.Header
	body   string
}

// send sends a request with the token of the editor. It has the status 0 without a response.
func send(ctx context.Context, method, url, body string) response {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return response{body: err.Error()}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/fhir+json")
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return response{body: err.Error()}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return response{body: err.Error()}
	}
	return response{got.StatusCode, got.Header, string(text)}
}

func patient(id string, n int) string {
	return fmt.Sprintf(`{"resourceType":"Patient","id":%q,"multipleBirthInteger":%d}`, id, n)
}

// load writes and reads until it is stopped.
type load struct {
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu sync.Mutex
	// acknowledged has the last acknowledged number and version of each record.
	acknowledged map[string]written
	// pause is the longest time between two acknowledged writes of one writer.
	pause    time.Duration
	writes   int
	failures []string
}

type written struct {
	number, version int
}

// versionIn returns the version in an ETag such as W/"7", or 0.
func versionIn(etag string) int {
	version, _ := strconv.Atoi(strings.Trim(etag, `W/"`))
	return version
}

// startLoad starts writers, each with records of its own, and readers. prefix is that of the ids.
func startLoad(prefix string) *load { return startLoadOf(prefix, writers, readers) }

func startLoadOf(prefix string, writers, readers int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, acknowledged: map[string]written{}}
	for w := range writers {
		l.group.Go(func() { l.write(ctx, fmt.Sprintf("%s-%d", prefix, w), paddock.URLs[w%2]) })
	}
	for r := range readers {
		l.group.Go(func() { l.read(ctx, paddock.URLs[r%2]) })
	}
	return l
}

func (l *load) write(ctx context.Context, prefix, base string) {
	last := time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", prefix, n%perWriter)
		for ctx.Err() == nil {
			got := send(context.WithoutCancel(ctx), "PUT", base+patients+"/"+id, patient(id, n))
			if got.status == 200 || got.status == 201 {
				version := versionIn(got.header.Get("ETag"))
				l.mu.Lock()
				if before := l.acknowledged[id]; version <= before.version {
					l.failures = append(l.failures, fmt.Sprintf("write %d of %s through %s made version %d, but version %d was acknowledged before: that write is lost",
						n, id, base, version, before.version))
				}
				l.acknowledged[id] = written{n, version}
				l.writes++
				l.pause = max(l.pause, time.Since(last))
				l.mu.Unlock()
				last = time.Now()
				break
			}
			// A killed API server does not respond. The write may have happened, and is sent again.
			if got.status != 0 && (got.status != 503 || got.header.Get("Retry-After") == "") {
				l.fail("write of %s: %d %s", id, got.status, got.body)
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(pauseBetween())
	}
}

// read reads records, which must never be older than what was acknowledged before the read.
func (l *load) read(ctx context.Context, base string) {
	for ctx.Err() == nil {
		l.mu.Lock()
		var id string
		var want written
		for id, want = range l.acknowledged {
			break
		}
		l.mu.Unlock()
		if id != "" {
			wasAsleep := asleep.Load()
			got := send(context.WithoutCancel(ctx), "GET", base+patients+"/"+id, "")
			var body struct {
				MultipleBirthInteger int `json:"multipleBirthInteger"`
			}
			// An API server that was started again cannot check tokens at once. During the switch it opens the
			// new storage first.
			if got.status == 0 || got.status == 503 && time.Since(time.UnixMilli(lastStart.Load())) < startTime {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			if got.status == 200 && base == paddock.URLs[1] && (wasAsleep || asleep.Load()) {
				continue
			}
			if got.status != 200 || json.Unmarshal([]byte(got.body), &body) != nil || body.MultipleBirthInteger < want.number {
				l.fail("read of %s through %s: %d, number %d, acknowledged was %d: %s", id, base, got.status, body.MultipleBirthInteger, want.number, got.body)
			}
		}
		time.Sleep(pauseBetween())
	}
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// stop ends the load and checks that every acknowledged write is there: the last one of each record at
// its version, and that no later one was given the version of an earlier one.
func (l *load) stop(ctx context.Context) {
	GinkgoHelper()
	l.cancel()
	l.group.Wait()
	Expect(l.failures).To(BeEmpty())
	Expect(l.writes).To(BeNumerically(">", 50))
	for id, want := range l.acknowledged {
		got := send(ctx, "GET", paddock.URLs[0]+patients+"/"+id, "")
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).To(ContainSubstring(fmt.Sprintf(`"multipleBirthInteger":%d`, want.number)), "record %s", id)
		Expect(versionIn(got.header.Get("ETag"))).To(Equal(want.version), "record %s", id)
	}
	AddReportEntry(fmt.Sprintf("%d writes acknowledged; longest time between two of a writer", l.writes), l.pause)
	GinkgoWriter.Printf("%d writes, longest pause %v\n", l.writes, l.pause)
}
