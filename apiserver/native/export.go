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
	// maxPage limits a page in bytes if it ends with a large record: it has no further part of that record.
	// Each of its pages reads the whole record again. kubectl paddock reads pages of 256 MiB.
	maxPage = 32 << 20
	// nextHeader is the header with the last record of a page, or its last version, if further ones follow.
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
	var from int64
	for name := range query {
		value := query.Get(name)
		switch name {
		case "after":
			var ok bool
			if dump.After, from, ok = parseAfter(value); !ok {
				return &invalidError{name, "must have the form {type}/{id} or {type}@{version}/{id}; use the value of " + nextHeader}
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
	var page store.DumpPage
	if from > 0 { // the rest of a record
		if page, err = site.Store.Dump(r.Context(), store.DumpQuery{Keys: []store.Key{dump.After}, MaxRecords: 1, MaxBytes: pageBytes}); err != nil {
			return err
		}
		page.More = true
	}
	// The record may be purged meanwhile.
	if len(page.Records) == 0 || page.Records[0].Newest().Version <= from {
		from = 0
		if page, err = site.Store.Dump(r.Context(), dump); err != nil {
			return err
		}
	}
	body, versions, next := pageOf(page.Records, from)
	header := w.Header()
	header.Set(versionsHeader, strconv.Itoa(versions))
	header.Set(recordsHeader, strconv.FormatInt(site.Store.Stats().Records, 10))
	header.Set(timeHeader, complete.Add(-indexDelay).UTC().Format(milliseconds))
	if next == "" && page.More && len(page.Records) > 0 {
		last := page.Records[len(page.Records)-1].Key
		next = last.Type + "/" + last.ID
	}
	if next != "" {
		header.Set(nextHeader, next)
	}
	web.Respond(w, r, http.StatusOK, ndjson, body)
	return nil
}

// parseAfter parses the parameter after: the key of a record and, if the rest of its versions follows, the
// number of the last version of the page before.
func parseAfter(value string) (after store.Key, version int64, ok bool) {
	name, id, ok := strings.Cut(value, "/")
	if !ok || !utf8.ValidString(value) || strings.Contains(value, "\x00") { // Postgres refuses such texts
		return store.Key{}, 0, false
	}
	name, number, isPart := strings.Cut(name, "@")
	if isPart {
		var err error
		if version, err = strconv.ParseInt(number, 10, 64); err != nil || version < 1 {
			return store.Key{}, 0, false
		}
	}
	return store.Key{Type: name, ID: id}, version, true
}

// pageOf returns the lines of records, and the number of their versions. It leaves out the parts of records
// with no later version than from. If a record has parts beyond maxPage, it ends with one of them, and next
// is the value of after for the others.
func pageOf(records []store.Dumped, from int64) (lines []byte, versions int, next string) {
	size := 0
	for i := range records {
		size += lineBytes
		for j := range records[i].Versions {
			size += versionBytes + len(records[i].Versions[j].Body.JSON)
		}
	}
	lines = make([]byte, 0, min(size, maxPage+2*partBytes))
	for i := range records {
		rest := records[i]
		part, repeated := 0, 0 // repeated versions are in the part before
		for {
			length := partLength(rest.Versions)
			isLast := length == len(rest.Versions)
			if part > 0 || !isLast {
				part++
			}
			one := store.Dumped{Key: rest.Key, Versions: rest.Versions[:length]}
			if newest := one.Newest().Version; newest > from {
				lines = appendLine(lines, &one, part)
				versions += length - repeated
				if !isLast && len(lines) > maxPage {
					return lines, versions, rest.Key.Type + "@" + strconv.FormatInt(newest, 10) + "/" + rest.Key.ID
				}
			}
			if isLast {
				break
			}
			rest.Versions, repeated = rest.Versions[length-1:], 1
		}
	}
	return lines, versions, ""
}
