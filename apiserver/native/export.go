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
	// pageRecords is the maximum number of records of a page. pageBytes is the size of the bodies of a
	// page after which it has no further record.
	pageRecords, pageBytes = 1000, 4 << 20
	// maxPage is the size in bytes of a page after which it has no further part of a record. The page
	// with the next parts reads that record again as a whole. kubectl paddock accepts responses of up to
	// 256 MiB.
	maxPage = 32 << 20
	// nextHeader is the header with the value of the parameter after for the next page. A response
	// without the header is the last page.
	nextHeader = "Paddock-Next"
	// timeHeader is the header with a time. The page has all changes of its records before that time.
	timeHeader = "Paddock-Time"
	// versionsHeader is the header with the number of versions on the page. recordsHeader is the header
	// with the number of live records of the site.
	versionsHeader = "Paddock-Versions"
	recordsHeader  = "Paddock-Records"
)

// lineBytes is the usual length in bytes of a line without its versions, and versionBytes that of a
// version without its body. The buffer of a page is allocated by them, and grows if it is too small.
const lineBytes, versionBytes = 128, 192

// indexDelay is the time after which every replica knows the writes of the other replicas
// (store.Store.Search), with a margin.
const indexDelay = 2 * time.Second

// export serves GET …/native: a page of the records that come after the record in the parameter after,
// and that have changed since the time in the parameter since. Both parameters are optional.
func (h *handler) export(w http.ResponseWriter, r *http.Request, site Site, caller access.Caller) error {
	query, err := parametersOf(r)
	if err != nil {
		return err
	}
	dump := store.DumpQuery{MaxRecords: pageRecords, MaxBytes: pageBytes}
	var from int64
	for name := range query {
		value := query.Get(name)
		switch name {
		case "after":
			var ok bool
			if dump.After, from, ok = parseAfter(value); !ok {
				return invalidParameter(name, "must have the form {type}/{id} or {type}@{version}/{id}; use the value of the header "+nextHeader)
			}
		case "since":
			if dump.Since, err = time.Parse(time.RFC3339, value); err != nil {
				return invalidParameter(name, "must be a time in RFC 3339, such as that of the header "+timeHeader)
			}
		default:
			return invalidParameter(name, "is unknown; the known parameters are after and since")
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
	// The rest may be missing, because the record was purged after the previous page. Then the next
	// records follow.
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

// pageOf returns the lines of records, and the number of their versions. It leaves out the parts of
// records that have no version later than from. If a part makes the page larger than maxPage, and is
// not the last part of its record, the page ends with this part. next is then the value of the
// parameter after for the rest of the record. Otherwise it is empty.
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
