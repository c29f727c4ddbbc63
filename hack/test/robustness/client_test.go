package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

const (
	contractJSON = "application/json"
	fhirJSON     = "application/fhir+json"
	// clientPatience is longer than a server takes to give up.
	clientPatience = 40 * time.Second
)

// client uses one type of records at one API server.
type client struct {
	kind   kind
	server string
	http   *http.Client
}

func newClient(k kind, server string) *client {
	return &client{kind: k, server: server, http: &http.Client{Timeout: clientPatience, Transport: transport}}
}

// transport is shared: as many connections stay open as writers use.
var transport = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}

// answer is what came back.
type answer struct {
	// status is 0 when there was no answer.
	status int
	// unsent: there was not even a connection, so that nothing can have happened.
	unsent bool
	header http.Header
	body   []byte
}

func (c *client) url(elements ...string) string {
	return c.server + path.Join(append([]string{"/site", c.kind.site, "fhir", c.kind.segment}, elements...)...)
}

func (c *client) do(ctx context.Context, method, url, dialect string, header http.Header, body []byte) answer {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer{unsent: true}
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Authorization", "Bearer "+bearers[c.kind.site])
	request.Header.Set("Accept", dialect)
	if body != nil {
		request.Header.Set("Content-Type", dialect)
	}
	response, err := c.http.Do(request)
	if err != nil {
		var failed *net.OpError
		return answer{unsent: errors.As(err, &failed) && failed.Op == "dial"}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}
	}
	return answer{status: response.StatusCode, header: response.Header, body: content}
}

func (c *client) get(ctx context.Context, id string) answer {
	return c.do(ctx, http.MethodGet, c.url(id), contractJSON, nil, nil)
}

// impatient is a client that hangs up after a while.
func (c *client) impatient(d time.Duration) *client {
	return &client{kind: c.kind, server: c.server, http: &http.Client{Timeout: d, Transport: c.http.Transport}}
}

// apply does an operation and enters the answer into it.
func (c *client) apply(ctx context.Context, op *history.Operation) answer {
	header := http.Header{}
	if op.If.Version != 0 {
		header.Set("If-Match", `W/"`+strconv.FormatInt(op.If.Version, 10)+`"`)
	}
	if op.If.Absent {
		header.Set("If-None-Match", "*")
	}
	if op.Criteria != "" {
		header.Set("If-None-Exist", "identifier="+op.Criteria)
	}
	var got answer
	op.Start = clock()
	switch {
	case op.Kind == history.Read:
		got = c.get(ctx, op.Record)
	case op.Kind == history.Delete:
		got = c.do(ctx, http.MethodDelete, c.url(op.Record), contractJSON, header, nil)
	case op.Record == "":
		got = c.do(ctx, http.MethodPost, c.url(), contractJSON, header, c.kind.body("", op.Token, op.Criteria))
	default:
		got = c.do(ctx, http.MethodPut, c.url(op.Record), contractJSON, header, c.kind.body(op.Record, op.Token, ""))
	}
	op.End = clock()
	c.enter(op, got)
	return got
}

// enter takes what the answer tells into the operation.
func (c *client) enter(op *history.Operation, got answer) {
	op.Version = got.version()
	switch {
	case got.unsent:
		op.Outcome = history.Refused
	case got.status == 0 || got.status >= http.StatusInternalServerError:
		op.Outcome = history.Unknown
	case op.Kind == history.Read && got.status == http.StatusGone:
		op.Outcome, op.Deleted = history.Acknowledged, true
	case op.Kind == history.Read && got.status == http.StatusNotFound && got.code() == codeNotFound:
		op.Outcome, op.Version = history.Acknowledged, 0
	case got.status >= http.StatusBadRequest:
		op.Outcome, op.Unmet = history.Refused, got.status == http.StatusPreconditionFailed
	case op.Criteria != "" && got.status == http.StatusOK:
		op.Outcome = history.Refused // there was one: see found
	default:
		op.Outcome = history.Acknowledged
		// Deleting what is deleted is acknowledged with the deletion that is there.
		op.Made = op.Kind == history.Put || op.Kind == history.Delete && op.If.Version != 0
	}
	if op.Outcome != history.Acknowledged {
		op.Version = 0
	}
	switch {
	case op.Kind == history.Read && got.status == http.StatusOK:
		_, seen := c.kind.version(got.body)
		op.Token, op.Version = seen.Token, seen.Number
	case op.Record == "" && op.Outcome == history.Acknowledged:
		op.Record = got.createdID()
	}
}

// found is what a create under criteria told of the record that was there.
func (c *client) found(op history.Operation, got answer) (history.Operation, bool) {
	if op.Criteria == "" || got.status != http.StatusOK {
		return history.Operation{}, false
	}
	_, seen := c.kind.version(got.body)
	return history.Operation{
		Kind: history.Read, Record: got.createdID(), Token: seen.Token, Version: seen.Number,
		Start: op.Start, End: op.End, Outcome: history.Acknowledged,
	}, true
}

// codeNotFound is the code of an answer that knows that there is no such record.
const codeNotFound = "resource_not_found"

// code is the machine-readable code of an error.
func (a answer) code() string {
	var outcome struct {
		Issue []struct {
			Details struct{ Coding []struct{ Code string } }
		}
	}
	if err := json.Unmarshal(a.body, &outcome); err != nil || len(outcome.Issue) == 0 {
		return "no OperationOutcome"
	}
	return outcome.Issue[0].Details.Coding[0].Code
}

// said is an answer as tallies name it.
func (a answer) said() string {
	switch {
	case a.unsent:
		return "no connection"
	case a.status == 0:
		return "connection broke"
	case a.status >= http.StatusBadRequest:
		return strconv.Itoa(a.status) + " " + a.code()
	default:
		return strconv.Itoa(a.status)
	}
}

// version is that of the ETag, 0 without one.
func (a answer) version() int64 {
	tag := strings.TrimSuffix(strings.TrimPrefix(a.header.Get("ETag"), `W/"`), `"`)
	version, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// createdID is the id in a Location …/{id}/_history/{vid}.
func (a answer) createdID() string {
	return path.Base(path.Dir(path.Dir(a.header.Get("Location"))))
}

var began = time.Now()

// clock tells the time of operations; it never steps back.
func clock() time.Duration { return time.Since(began) }
