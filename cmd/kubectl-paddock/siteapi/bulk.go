package siteapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	// bulkTimeout is the time limit of a request of an export or an import, and of its response.
	bulkTimeout = 11 * time.Minute
	// maxRetryWait is the maximum wait before a request is sent again, whatever Retry-After says.
	maxRetryWait = time.Minute
	// retryWait is the wait before a request is sent again if there is no Retry-After.
	retryWait = 2 * time.Second
	// maxUnreachable is how long a request is repeated after an attempt without a complete response, if
	// the following attempts get no response either.
	maxUnreachable = 5 * time.Minute
)

// Export is the state of a bulk export.
type Export struct {
	// ID identifies the export at its site.
	ID string
	// Progress is the header field X-Progress of the site, a text for people. It is set while the
	// export is not complete.
	Progress string
	// Manifest lists the files of the export. It is nil while the export is not complete.
	Manifest *Manifest
}

// Manifest lists the files of an export, as defined by Bulk Data Access 2.0.
type Manifest struct {
	TransactionTime string         `json:"transactionTime"`
	Request         string         `json:"request"`
	Output          []ManifestFile `json:"output"`
}

// ManifestFile is a file of an export.
type ManifestFile struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// StartExport starts an export of a site and returns its id. Errors: *Error.
func (c *Client) StartExport(ctx context.Context, query url.Values) (string, error) {
	answer, err := c.persist(ctx, http.MethodGet, "/fhir/$export?"+query.Encode(), http.Header{"Prefer": {"respond-async"}}, nil)
	if err != nil {
		return "", err
	}
	id := path.Base(answer.header.Get("Content-Location"))
	if answer.status != http.StatusAccepted || id == "." {
		return "", fmt.Errorf("GET /fhir/$export: want status 202 and the header Content-Location, got status %d and Content-Location %q; check the URL of the site and proxies before it", answer.status, answer.header.Get("Content-Location"))
	}
	return id, nil
}

// ExportStatus returns the state of an export. If the export is not complete, wait is how long to
// wait until the next call. Errors: *Error.
func (c *Client) ExportStatus(ctx context.Context, id string) (e Export, wait time.Duration, err error) {
	answer, err := c.persist(ctx, http.MethodGet, "/fhir/$export/"+url.PathEscape(id), nil, nil)
	if err != nil {
		return Export{}, 0, err
	}
	e = Export{ID: id, Progress: answer.header.Get("X-Progress")}
	if answer.status == http.StatusAccepted {
		return e, retryAfter(answer.header), nil
	}
	if err := json.Unmarshal(answer.body, &e.Manifest); err != nil {
		return Export{}, 0, fmt.Errorf("decode the manifest of export %s: %w", id, err)
	}
	return e, 0, nil
}

// ExportFile returns the content of a file of an export. Only the last segment of file.URL is used,
// so that the token is sent only to the site. Errors: *Error.
func (c *Client) ExportFile(ctx context.Context, id string, file ManifestFile) ([]byte, error) {
	answer, err := c.persist(ctx, http.MethodGet, "/fhir/$export/"+url.PathEscape(id)+"/"+url.PathEscape(path.Base(file.URL)), http.Header{"Accept": {"application/fhir+ndjson"}}, nil)
	return answer.body, err
}

// EndExport deletes an export at the site, with its files. Errors: *Error.
func (c *Client) EndExport(ctx context.Context, id string) error {
	_, err := c.persist(ctx, http.MethodDelete, "/fhir/$export/"+url.PathEscape(id), nil, nil)
	return err
}

// ImportResult is the result of an import.
type ImportResult struct {
	// Counts has the numbers of lines by result: created, updated, unchanged and failed, or valid and
	// failed for a dry run. In the native format, it can also have the number of superseded versions that
	// the site did not keep, as "versions dropped".
	Counts map[string]int
	Errors []LineError
}

// LineError is a problem in a line of an import. The first line has the number 1.
type LineError struct {
	Line       int
	Code       string
	Expression string
	Message    string
}

// Import sends lines of NDJSON to $import of a site. With dryRun, the site validates the lines and
// writes nothing. Errors: *Error.
func (c *Client) Import(ctx context.Context, lines []byte, dryRun bool) (ImportResult, error) {
	answer, err := c.persist(ctx, http.MethodPost, "/fhir/$import?dryRun="+strconv.FormatBool(dryRun), http.Header{"Content-Type": {"application/fhir+ndjson"}}, lines)
	if err != nil {
		return ImportResult{}, err
	}
	var parameters struct {
		Parameter []struct {
			Name         string
			ValueInteger int
			Part         []struct {
				Name         string
				ValueInteger int
				Resource     document
			}
		}
	}
	if err := json.Unmarshal(answer.body, &parameters); err != nil {
		return ImportResult{}, fmt.Errorf("decode the response of the import: %w", err)
	}
	result := ImportResult{Counts: map[string]int{}}
	for _, p := range parameters.Parameter {
		if p.Name != "error" {
			result.Counts[p.Name] = p.ValueInteger
			continue
		}
		line := 0
		for _, part := range p.Part {
			if part.Name == "line" {
				line = part.ValueInteger
			}
			for _, issue := range part.Resource.Issue {
				result.Errors = append(result.Errors, LineError{Line: line, Code: issue.code(), Expression: strings.Join(issue.Expression, ", "), Message: issue.Diagnostics})
			}
		}
	}
	return result, nil
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	// err is the error of a response other than 2xx.
	err *Error
}

// persist sends a request. It repeats the request as long as the response has status 429 or 502 to 504.
// While there is no complete response, it repeats the request for up to maxUnreachable, and then returns
// the error of the last attempt. Errors: *Error, errTooLarge, and that of the context.
func (c *Client) persist(ctx context.Context, method, path string, header http.Header, body []byte) (answer, error) {
	return c.persistBegun(ctx, method, path, header, body, func(http.Header) {})
}

// persistBegun is like persist, and calls begun with the header of each successful response before it
// reads the body.
func (c *Client) persistBegun(ctx context.Context, method, path string, header http.Header, body []byte, begun func(http.Header)) (answer, error) {
	var unreachable time.Time // since when the site cannot be reached, or zero
	for {
		token, err := c.token(ctx)
		if err != nil {
			return answer{}, err
		}
		got, err := c.attempt(ctx, method, path, token, header, body, begun)
		wait := retryWait
		if err == nil {
			switch {
			case got.status == http.StatusTooManyRequests, got.status >= http.StatusBadGateway && got.status <= http.StatusGatewayTimeout:
				err, wait, unreachable = got.err, retryAfter(got.header), time.Time{}
			case got.err != nil:
				return answer{}, got.err
			default:
				return got, nil
			}
		} else {
			if unreachable.IsZero() {
				unreachable = time.Now()
			}
			switch {
			case errors.Is(err, errTooLarge):
				return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
			case ctx.Err() != nil || time.Since(unreachable) > maxUnreachable:
				return answer{}, err
			}
		}
		if c.Retrying != nil {
			c.Retrying(err, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer{}, ctx.Err()
		case <-timer.C:
		}
	}
}

// attempt sends a request once and reads the response.
func (c *Client) attempt(ctx context.Context, method, path, token string, header http.Header, body []byte, begun func(http.Header)) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, bulkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := *c.http
	client.Timeout = 0 // the context limits the request
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	got := answer{status: response.StatusCode, header: response.Header}
	success := got.status >= 200 && got.status <= 299
	if success {
		begun(response.Header)
	}
	if got.body, err = readBody(response, maxResponse); !success {
		got.err = newError(response, got.body)
	}
	return got, err
}

// errTooLarge means that a response has more than maxResponse bytes.
var errTooLarge = fmt.Errorf("the response has more than %d bytes, the maximum of this program; check the URL of the site and proxies before it", maxResponse)

// readBody reads the body of a response, at most limit bytes. If the response has its length, the memory is
// allocated at once. Errors: errTooLarge.
func readBody(response *http.Response, limit int64) ([]byte, error) {
	switch n := response.ContentLength; {
	case n > limit:
		return nil, errTooLarge
	case n >= 0:
		text := make([]byte, n)
		_, err := io.ReadFull(response.Body, text)
		return text, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, errTooLarge
	}
	return text, err
}

// retryAfter returns the time in Retry-After, at most maxRetryWait, or retryWait if there is no number of
// seconds.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return retryWait
	}
	return min(time.Duration(seconds)*time.Second, maxRetryWait)
}
