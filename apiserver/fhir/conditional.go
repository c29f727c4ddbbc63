package fhir

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// etag of a version. R4 http.html#versioning.
func etag(version int64) string { return `W/"` + strconv.FormatInt(version, 10) + `"` }

var (
	etagPattern  = regexp.MustCompile(`^(?:W/)?"([^"]*)"$`)
	knownPattern = regexp.MustCompile(`^(?:(?:W/)?"([^"]*)"|([0-9]+))$`)
)

// etags is the value of If-Match or If-None-Match: any version, or some. Whether
// they are weak does not matter: FHIR's always are.
type etags struct {
	given, any bool
	opaque     []string
}

// parseKnown reads If-None-Match of a read. Some clients send the bare version (fhirpy).
func parseKnown(header http.Header) (etags, error) {
	return parseTags(header, "If-None-Match", knownPattern)
}

func parseETags(header http.Header, name string) (etags, error) {
	return parseTags(header, name, etagPattern)
}

func parseTags(header http.Header, name string, pattern *regexp.Regexp) (etags, error) {
	value := strings.Join(header.Values(name), ",")
	if strings.TrimSpace(value) == "" {
		return etags{}, nil
	}
	tags := etags{given: true}
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "*" {
			tags.any = true
			continue
		}
		match := pattern.FindStringSubmatch(item)
		if match == nil {
			return etags{}, &invalidError{code: codeInvalidHeader, diagnostics: name + ": " + r4.Quote(item) + ` is not an ETag; write W/"1" or *`}
		}
		tags.opaque = append(tags.opaque, strings.Join(match[1:], ""))
	}
	return tags, nil
}

func (t etags) match(version int64) bool {
	return t.any || slices.Contains(t.opaque, strconv.FormatInt(version, 10))
}

// isNotModified reports whether the client of a read already has this version.
// If-None-Match goes before If-Modified-Since. RFC 9110 §13.2.2.
func isNotModified(header http.Header, rec store.Record) (bool, error) {
	tags, err := parseKnown(header)
	if err != nil || tags.given {
		return tags.match(rec.Version), err
	}
	date := header.Get("If-Modified-Since")
	if date == "" {
		return false, nil // without trying each of three formats
	}
	since, err := http.ParseTime(date)
	if err != nil {
		return false, nil //nolint:nilerr // RFC 9110 §13.1.3: an invalid date is as good as none
	}
	return !rec.Updated.Truncate(time.Second).After(since), nil // the header has whole seconds
}

// conditions are what a write asks for by its headers.
type conditions struct {
	// ifMatch are the versions one of which the record must be at.
	ifMatch etags
	// absent: there must be no such record.
	absent bool
}

func parseConditions(header http.Header) (conditions, error) {
	ifMatch, err := parseETags(header, "If-Match")
	if err != nil {
		return conditions{}, err
	}
	ifNoneMatch, err := parseETags(header, "If-None-Match")
	if err != nil {
		return conditions{}, err
	}
	invalid := func(diagnostics string) (conditions, error) {
		return conditions{}, &invalidError{code: codeInvalidHeader, diagnostics: diagnostics}
	}
	switch {
	case ifNoneMatch.given && !ifNoneMatch.any:
		return invalid("If-None-Match on a write takes * only")
	case ifNoneMatch.given && ifMatch.given:
		return invalid("If-Match and If-None-Match exclude each other")
	}
	return conditions{ifMatch: ifMatch, absent: ifNoneMatch.given}, nil
}

// check says whether a record is as the conditions ask for it.
func (c conditions) check(rec store.Record) error {
	if c.absent || c.ifMatch.given && !c.ifMatch.match(rec.Version) {
		return &store.PreconditionError{Key: rec.Key, Current: &rec}
	}
	return nil
}

// precondition of an operation on the record at key. With several versions to
// match it is the one that the record is at.
func (t etags) precondition(r *request) (store.Precondition, error) {
	switch {
	case !t.given:
		return store.Precondition{}, nil
	case t.any:
		return store.Precondition{Present: true}, nil
	case len(t.opaque) == 1:
		return store.Precondition{Version: versionOf(t.opaque[0])}, nil
	}
	current, err := r.site.Store.Get(r.Context(), r.key())
	if isAbsent(err) {
		return store.Precondition{}, &store.PreconditionError{Key: r.key()}
	}
	if err != nil {
		return store.Precondition{}, err
	}
	if !t.match(current.Version) {
		return store.Precondition{}, &store.PreconditionError{Key: current.Key, Current: &current}
	}
	return store.Precondition{Version: current.Version}, nil
}

// noVersion is one that no record has.
const noVersion = -1

// versionOf reads a version id, written as the server writes it.
func versionOf(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 || strconv.FormatInt(version, 10) != text {
		return noVersion
	}
	return version
}
