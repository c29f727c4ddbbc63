package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIdentify(t *testing.T) {
	for sent, kept := range map[string]bool{
		"abc-1.2_3":                 true,
		"":                          false,
		"with space":                false,
		"line\nbreak":               false,
		strings.Repeat("a", 64):     true,
		strings.Repeat("a", 65):     false,
		"<script>alert(1)</script>": false,
	} {
		var seen string
		handler := Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = RequestID(r.Context()) }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(requestIDHeader, sent)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Header().Get(requestIDHeader); got != seen || got == "" || (got == sent) != kept {
			t.Errorf("sent %q, answered %q, logged %q", sent, got, seen)
		}
	}
}

func TestRecover(t *testing.T) {
	var log bytes.Buffer
	fail := func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	handler := Recover(slog.New(slog.NewTextHandler(&log, nil)), fail, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("out of range") }))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "TestRecover") {
		t.Errorf("%d, log %s", w.Code, &log)
	}
	aborting := Recover(slog.Default(), fail, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
			t.Errorf("an aborted answer ended with %v", cause)
		}
	}()
	aborting.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

func gzipped(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text) // into memory
	_ = w.Close()
	return packed.String()
}

func TestReadBody(t *testing.T) {
	const limit = 100
	var tooLarge *TooLargeError
	var encoded *EncodingError
	var broken *BrokenBodyError
	for name, test := range map[string]struct {
		body, encoding string
		unannounced    bool
		want           string
		err            any
	}{
		"plain":                         {body: "text", want: "text"},
		"at the limit":                  {body: strings.Repeat("a", limit), want: strings.Repeat("a", limit)},
		"over the limit":                {body: strings.Repeat("a", limit+1), err: &tooLarge},
		"over the limit, unannounced":   {body: strings.Repeat("a", limit+1), unannounced: true, err: &tooLarge},
		"gzip":                          {body: gzipped("text"), encoding: "GZIP", want: "text"},
		"gzip over the limit, inflated": {body: gzipped(strings.Repeat("a", 10*limit)), encoding: "gzip", err: &tooLarge},
		"gzip cut off":                  {body: gzipped("some text")[:15], encoding: "gzip", err: &broken},
		"no gzip":                       {body: "text", encoding: "gzip", err: &broken},
		"another encoding":              {body: "text", encoding: "br", err: &encoded},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
			r.Header.Set("Content-Encoding", test.encoding)
			if test.unannounced {
				r.ContentLength = -1
			}
			got, err := ReadBody(httptest.NewRecorder(), r, limit)
			if test.err == nil && err != nil || test.err != nil && !errors.As(err, test.err) {
				t.Fatalf("error %v", err)
			}
			if string(got) != test.want {
				t.Errorf("read %q", got)
			}
		})
	}
}

func TestParseQuery(t *testing.T) {
	tests := map[string]url.Values{
		"":                       {},
		"name=a;b&c":             {"name": {"a;b"}, "c": {""}},
		"_format=x%3By;z=1":      {"_format": {"x;y;z=1"}},
		"given=Jos%C3%A9+Mar%C3": {"given": {"José Mar\xc3"}},
	}
	for query, want := range tests {
		got, err := ParseQuery(query)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q (-want +got), error %v:\n%s", query, err, diff)
		}
	}
	if _, err := ParseQuery("a=%zz"); err == nil {
		t.Error("a broken escape is taken")
	}
}

func TestReadBodyThatDoesNotCome(t *testing.T) {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{"))
	request.ContentLength = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body, err := ReadBody(httptest.NewRecorder(), request, 64<<20)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 || err != nil || len(body) != 1 {
		t.Errorf("%d bytes were taken for a body of %d, error %v", taken, len(body), err)
	}
}
