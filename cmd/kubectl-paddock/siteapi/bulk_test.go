package siteapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTooLargeFile(t *testing.T) {
	requests := 0
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Length", strconv.Itoa(maxResponse+1))
	})
	content, err := c.ExportFile(t.Context(), "1", ManifestFile{URL: "file"})
	if !errors.Is(err, errTooLarge) || len(content) > 0 || requests != 1 {
		t.Errorf("got %d bytes and %v with %d requests, want %v with one", len(content), err, requests, errTooLarge)
	}
}

func TestReadBody(t *testing.T) {
	for name, test := range map[string]struct {
		length int64
		body   string
		want   error
	}{
		"of a known length":          {4, "four", nil},
		"of an unknown length":       {-1, "four", nil},
		"too large":                  {5, "fives", errTooLarge},
		"too large, not known first": {-1, "fives", errTooLarge},
		"cut":                        {4, "cut", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readBody(&http.Response{ContentLength: test.length, Body: io.NopCloser(strings.NewReader(test.body))}, 4)
			if !errors.Is(err, test.want) || err == nil && string(got) != test.body {
				t.Errorf("got %q, %v, want %v", got, err, test.want)
			}
		})
	}
}

// slow answers requests after a time, each with an error or, if it is nil, with 200.
type slow struct {
	after   time.Duration
	answers []error
}

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(s.after)
	err := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: 0, Body: http.NoBody}, nil
}

func TestPersist(t *testing.T) {
	lost := errors.New("connection reset")
	for name, test := range map[string]struct {
		slow slow
		want time.Duration
		err  error
	}{
		"a long request that is lost":     {slow{6 * time.Minute, []error{lost, nil}}, 12*time.Minute + retryWait, nil},
		"a site that cannot be reached":   {slow{0, []error{lost}}, maxUnreachable + retryWait, lost},
		"a site that can be reached soon": {slow{time.Second, []error{lost, lost, nil}}, 3*time.Second + 2*retryWait, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Client{base: "https://site", token: func(context.Context) (string, error) { return "token", nil }, http: &http.Client{Transport: &test.slow}}
				began := time.Now()
				_, err := c.persist(t.Context(), http.MethodGet, "/", nil, nil)
				if got := time.Since(began); !errors.Is(err, test.err) || got != test.want {
					t.Errorf("got %v after %s, want %v after %s", err, got, test.err, test.want)
				}
			})
		})
	}
}
