package native

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	ndjson = "application/x-ndjson"
	// pageRecords and pageBytes limit a page: its records, and the bytes of bodies after which it has
	// no further record.
	pageRecords, pageBytes = 1000, 4 << 20
	// nextHeader is the header with the last record of a page, if further ones follow.
	nextHeader = "Paddock-Next"
	// timeHeader is the header with the time before which the page has all changes of its records.
	timeHeader = "Paddock-Time"
	// versionsHeader is the header with the number of versions on the page, recordsHeader that with the
	// number of live records of the site.
	versionsHeader = "Paddock-Versions"
	recordsHeader  = "Paddock-Records"
)

// lineBytes and versionBytes are the usual lengths in bytes of a line without versions and of a version
// without its body. They make room for a page, which grows if they do not suffice.
const lineBytes, versionBytes = 128, 192

// indexDelay is the time after which every replica knows the writes of the others (store.Search),
// with a margin.
const indexDelay = 2 * time.Second

// export serves GET …/native: a page of records after a record, which changed since a time.
func (h *handler) export(w http.ResponseWriter, r *http.Request, site Site, caller access.Caller) error {
	query, err := web.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &invalidError{"query", err.Error() + "; percent-encode its special characters"}
	}
	dump := store.DumpQuery{MaxRecords: pageRecords, MaxBytes: pageBytes}
	for name := range query {
		value := query.Get(name)
		switch name {
		case "after":
			var ok bool
			dump.After.Type, dump.After.ID, ok = strings.Cut(value, "/")
			if !ok || !utf8.ValidString(value) || strings.Contains(value, "\x00") { // Postgres refuses such texts
				return &invalidError{name, "must have the form {type}/{id}; use the value of " + nextHeader}
			}
		case "since":
			if dump.Since, err = time.Parse(time.RFC3339, value); err != nil {
				return &invalidError{name, "must be a time in RFC 3339, such as that of " + timeHeader}
			}
		default:
			return &invalidError{name, "is unknown; the known parameters are after and since"}
		}
	}
	end, err := site.Limiter.Search(r.Context(), caller.Name)
	if err != nil {
		return err
	}
	defer end()
	complete, err := site.Store.Watermark(r.Context())
	if err != nil {
		return err
	}
	page, err := site.Store.Dump(r.Context(), dump)
	if err != nil {
		return err
	}
	body, versions := pageOf(page.Records)
	header := w.Header()
	header.Set(versionsHeader, strconv.Itoa(versions))
	header.Set(recordsHeader, strconv.FormatInt(site.Store.Stats().Records, 10))
	header.Set(timeHeader, complete.Add(-indexDelay).UTC().Format(milliseconds))
	if page.More && len(page.Records) > 0 {
		last := page.Records[len(page.Records)-1].Key
		header.Set(nextHeader, last.Type+"/"+last.ID)
	}
	web.Respond(w, r, http.StatusOK, ndjson, body)
	return nil
}

// pageOf returns the lines of records, and the number of their versions.
func pageOf(records []store.Dumped) (lines []byte, versions int) {
	size := 0
	for i := range records {
		size += lineBytes
		versions += len(records[i].Versions)
		for j := range records[i].Versions {
			size += versionBytes + len(records[i].Versions[j].Body.JSON)
		}
	}
	lines = make([]byte, 0, size)
	for i := range records {
		lines = appendLine(lines, &records[i])
	}
	return lines, versions
}
