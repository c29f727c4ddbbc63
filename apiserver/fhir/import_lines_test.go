package fhir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// TestLineReader checks that the limit of a line does not count its line break.
func TestLineReader(t *testing.T) {
	for body, want := range map[string][]string{
		"1234\n1234":           {"1234", "1234"},
		"1234\r\n\n1234\r\n":   {"1234", "", "1234"},
		"12345\n12\n":          {"too long", "12"},
		"1234\r\r\n12345":      {"too long", "too long"},
		"\r\r\r\r\r\r\r\n12\n": {"too long", "12"},
	} {
		lines, err := newLineReader(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), 4)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.As(err, new(*web.TooLargeError)) {
				line = []byte("too long")
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", body, diff)
		}
	}
}

// slowClient sends a body at two lines a second, and its connection has deadlines as that of net/http.
type slowClient struct {
	*httptest.ResponseRecorder
	line     func(number int) string
	sent     int
	deadline time.Time
}

func (c *slowClient) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *slowClient) Read(to []byte) (int, error) {
	time.Sleep(time.Second / 2)
	if time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	line := c.line(c.sent)
	if line == "" {
		return 0, io.EOF
	}
	c.sent++
	return copy(to, line), nil
}

// createsAll is a storage that creates each record.
type createsAll struct{ noStore }

func (createsAll) Atomic() bool { return true }

func (createsAll) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	for i := range ops {
		results[i].Outcome = store.Created
	}
	return results, nil
}

// importFrom imports the lines of a client, one hour later at most.
func importFrom(t *testing.T, client *slowClient) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), importTimeout)
	defer cancel()
	started := time.Now()
	client.deadline = started.Add(requestTimeout)
	bounded := client.line
	client.line = func(number int) string {
		if time.Since(started) > time.Hour {
			t.Error("the import has no end")
			return ""
		}
		return bounded(number)
	}
	sent := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(client)).WithContext(ctx)
	lines, err := newLineReader(sent, 100)
	if err != nil {
		t.Fatal(err)
	}
	i := &importer{counts: map[string]int{}, rights: map[string]bool{}, request: &request{
		Request: sent, dialect: fhirDialect, authorizer: allowAll{},
		site: Endpoint{Store: createsAll{}, Settings: settings.Settings{UpdateCreate: true}},
	}}
	err = i.readAll(client, lines)
	if err == nil && i.counts[importCreated] != client.sent {
		t.Errorf("of %d lines: %v", client.sent, i.counts)
	}
	return err
}

// TestImportOutlivesDeadlines checks that an import may take longer than a client may be idle.
func TestImportOutlivesDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 5 * maxImportBatch
		client := &slowClient{ResponseRecorder: httptest.NewRecorder(), line: func(number int) string {
			if number == lines {
				return ""
			}
			return fmt.Sprintf("{\"resourceType\":\"Patient\",\"id\":\"p%d\"}\n", number)
		}}
		if err := importFrom(t, client); err != nil {
			t.Error(err)
		}
	})
}

// TestImportEnds checks that an import ends with its request, whatever the client sends.
func TestImportEnds(t *testing.T) {
	for name, line := range map[string]string{"blank lines": "\n", "lines that are too long": strings.Repeat("x", 200) + "\n"} {
		synctest.Test(t, func(t *testing.T) {
			client := &slowClient{ResponseRecorder: httptest.NewRecorder(), line: func(int) string { return line }}
			if err := importFrom(t, client); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
