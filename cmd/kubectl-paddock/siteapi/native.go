package siteapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// ndjsonNative is the media type of the native format.
const ndjsonNative = "application/x-ndjson"

// nextHeader is the header of a page with the value of after that selects the next page.
const nextHeader = "Paddock-Next"

// NativePage is a page of an export in the native format.
type NativePage struct {
	Lines []byte
	// Next is the value of after that selects the next page. It is empty on the last page.
	Next string
	// Time is a time in RFC 3339. The page has all changes of its records before that time.
	Time string
	// Versions is the number of versions in Lines. Records is the number of live records of the site,
	// to show the progress. Each is 0 if unknown.
	Versions, Records int
}

// ExportNative returns a page of the records that changed since a time in RFC 3339, or of all records
// if since is empty. after is Next of the previous page, or empty for the first page. ExportNative calls
// announce, unless it is nil, with Next of the page before it reads the lines. If it sends the request
// again, it calls announce again. Errors: *Error.
func (c *Client) ExportNative(ctx context.Context, after, since string, announce func(next string)) (NativePage, error) {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if since != "" {
		query.Set("since", since)
	}
	begun := func(header http.Header) {
		if announce != nil {
			announce(header.Get(nextHeader))
		}
	}
	answer, err := c.persistBegun(ctx, http.MethodGet, "/native?"+query.Encode(), http.Header{"Accept": {ndjsonNative}}, nil, begun)
	if err != nil {
		return NativePage{}, err
	}
	page := NativePage{Lines: answer.body, Next: answer.header.Get(nextHeader), Time: answer.header.Get("Paddock-Time")}
	if page.Time == "" {
		return NativePage{}, fmt.Errorf("GET /native: the response has no header Paddock-Time; check the URL of the site and proxies before it")
	}
	page.Versions, _ = strconv.Atoi(answer.header.Get("Paddock-Versions")) // only shown
	page.Records, _ = strconv.Atoi(answer.header.Get("Paddock-Records"))   // only shown, too
	return page, nil
}

// ImportNative sends lines in the native format to a site. With dryRun, the site validates the lines
// and writes nothing. Errors: *Error.
func (c *Client) ImportNative(ctx context.Context, lines []byte, dryRun bool) (ImportResult, error) {
	answer, err := c.persist(ctx, http.MethodPost, "/native?dryRun="+strconv.FormatBool(dryRun), http.Header{"Content-Type": {ndjsonNative}}, lines)
	if err != nil {
		return ImportResult{}, err
	}
	var got struct {
		Valid                                                *int
		Created, Updated, Unchanged, Failed, DroppedVersions int
		Errors                                               []LineError
	}
	if err := json.Unmarshal(answer.body, &got); err != nil {
		return ImportResult{}, fmt.Errorf("decode the response of the import: %w", err)
	}
	result := ImportResult{Counts: map[string]int{"failed": got.Failed}, Errors: got.Errors}
	if got.Valid != nil {
		result.Counts["valid"] = *got.Valid
		return result, nil
	}
	result.Counts["created"], result.Counts["updated"], result.Counts["unchanged"] = got.Created, got.Updated, got.Unchanged
	if got.DroppedVersions > 0 {
		result.Counts["versions dropped"] = got.DroppedVersions
	}
	return result, nil
}
