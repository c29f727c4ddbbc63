package ahds

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
)

// etag of a version: strong, and another when a record is created again after a delete.
func etag(rec store.Record) string {
	const enough = 8 // letters tell the records apart that had the id
	return `"` + strconv.FormatInt(rec.Version, 10) + "-" + digest([]byte(rec.UID))[:enough] + `"`
}

// etags is the value of If-Match or If-None-Match: any version, or some.
type etags struct {
	given, any bool
	tags       []string
}

var etagForm = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7e\x80-\xff]*"$`)

func parseETags(header http.Header, name string) (etags, error) {
	value := strings.Join(header.Values(name), ",")
	if strings.TrimSpace(value) == "" {
		return etags{}, nil
	}
	parsed := etags{given: true}
	for item := range strings.SplitSeq(value, ",") {
		switch item = strings.TrimSpace(item); {
		case item == "*":
			parsed.any = true
		case etagForm.MatchString(item):
			parsed.tags = append(parsed.tags, item)
		default:
			return etags{}, fault.Faults{{In: fault.Header, At: name, Code: fault.CodeInvalidHeader, Detail: fault.Quote(item) + ` is not an ETag; write one as it came, with its quotes, or *`}}
		}
	}
	return parsed, nil
}

// matchStrong compares for If-Match: a weak tag matches nothing. RFC 9110 §13.1.1.
func (t etags) matchStrong(tag string) bool { return t.any || slices.Contains(t.tags, tag) }

// matchWeak compares for If-None-Match. RFC 9110 §13.1.2.
func (t etags) matchWeak(tag string) bool {
	return t.matchStrong(tag) || slices.Contains(t.tags, "W/"+tag)
}

// precondition is the If-Match of a write. If-None-Match makes no sense on one.
func (r *request) precondition() (etags, error) {
	if len(r.Header.Values("If-None-Match")) > 0 {
		return etags{}, fault.Faults{{In: fault.Header, At: "If-None-Match", Code: fault.CodeInvalidHeader, Detail: "this makes no sense on a write; send If-Match, or an id of your own to create once"}}
	}
	return parseETags(r.Header, "If-Match")
}

// check says whether a record is at one of the versions asked for, if any is.
func (t etags) check(rec store.Record) error {
	if t.given && !t.matchStrong(etag(rec)) {
		return &preconditionError{current: etag(rec)}
	}
	return nil
}

// isNotModified reports whether the client of a read already has what it would get.
// If-None-Match goes before If-Modified-Since. RFC 9110 §13.2.2.
func isNotModified(header http.Header, tag string, updated time.Time) (bool, error) {
	tags, err := parseETags(header, "If-None-Match")
	if err != nil || tags.given {
		return tags.matchWeak(tag), err
	}
	since, err := http.ParseTime(header.Get("If-Modified-Since"))
	if err != nil {
		return false, nil //nolint:nilerr // RFC 9110 §13.1.3: an invalid date is as good as none
	}
	return !updated.Truncate(time.Second).After(since), nil // the header has whole seconds
}
