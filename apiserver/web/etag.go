package web

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ETag is an entity tag. RFC 9110 §8.8.3.
type ETag struct {
	// Opaque is the tag without its quotes.
	Opaque string
	Weak   bool
}

// String returns the tag in the form of the header field ETag.
func (t ETag) String() string {
	if t.Weak {
		return `W/"` + t.Opaque + `"`
	}
	return `"` + t.Opaque + `"`
}

// ETags is the value of If-Match or If-None-Match. Given is true if the request has the header field
// with a value. Any is true if the value contains *. RFC 9110 §13.1.
type ETags struct {
	Given, Any bool
	Tags       []ETag
}

// ETagError is returned if an item of If-Match or If-None-Match is not an entity tag.
type ETagError struct{ Header, Item string }

func (e *ETagError) Error() string {
	return fmt.Sprintf(`%s: %.100q is not an ETag; send one such as W/"1"`, e.Header, e.Item)
}

// ParseETags parses the header field name, which is If-Match or If-None-Match. syntax is the facade's
// regular expression for a tag: its first group matches the W/ of a weak tag, and its other groups
// match the opaque part. Errors: *ETagError.
func ParseETags(header http.Header, name string, syntax *regexp.Regexp) (ETags, error) {
	value := strings.Join(header.Values(name), ",")
	if strings.TrimSpace(value) == "" {
		return ETags{}, nil
	}
	parsed := ETags{Given: true}
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "*" {
			parsed.Any = true
			continue
		}
		groups := syntax.FindStringSubmatch(item)
		if groups == nil {
			return ETags{}, &ETagError{Header: name, Item: item}
		}
		parsed.Tags = append(parsed.Tags, ETag{Weak: groups[1] != "", Opaque: strings.Join(groups[2:], "")})
	}
	return parsed, nil
}

// ParsePrecondition is ParseETags for a write, which must not ignore a precondition: a header field
// without a value names no version, so it is an error too. RFC 9110 §13.1.1. Errors: *ETagError.
func ParsePrecondition(header http.Header, name string, syntax *regexp.Regexp) (ETags, error) {
	parsed, err := ParseETags(header, name, syntax)
	if err == nil && !parsed.Given && len(header.Values(name)) > 0 {
		return ETags{}, &ETagError{Header: name}
	}
	return parsed, err
}

// MatchStrong reports whether a tag matches by strong comparison, as If-Match requires. A weak tag
// matches only *. RFC 9110 §13.1.1.
func (t ETags) MatchStrong(tag ETag) bool {
	return t.Any || !tag.Weak && slices.Contains(t.Tags, tag)
}

// MatchWeak reports whether a tag matches by weak comparison, as If-None-Match requires. RFC 9110
// §13.1.2.
func (t ETags) MatchWeak(tag ETag) bool {
	return t.Any || slices.ContainsFunc(t.Tags, func(other ETag) bool { return other.Opaque == tag.Opaque })
}

// IsNotModified reports whether the client of a read already has the version with this tag and time,
// so that the response is 304. If-None-Match overrides If-Modified-Since. RFC 9110 §13.2.2. A zero time
// means that the time of the last change is not known, and If-Modified-Since is ignored. RFC 9110 §13.1.3.
// syntax is the parameter of ParseETags. Errors: *ETagError.
func IsNotModified(header http.Header, syntax *regexp.Regexp, tag ETag, updated time.Time) (bool, error) {
	tags, err := ParseETags(header, "If-None-Match", syntax)
	if err != nil || tags.Given {
		return tags.MatchWeak(tag), err
	}
	date := header.Get("If-Modified-Since")
	if date == "" || updated.IsZero() {
		return false, nil // saves http.ParseTime from trying three formats
	}
	since, err := http.ParseTime(date)
	if err != nil {
		return false, nil //nolint:nilerr // RFC 9110 §13.1.3: an invalid date is ignored
	}
	return !updated.Truncate(time.Second).After(since), nil // the header has whole seconds
}

// SetVersion sets the ETag and Last-Modified of a response.
func SetVersion(header http.Header, tag ETag, updated time.Time) {
	header.Set("ETag", tag.String())
	header.Set("Last-Modified", updated.UTC().Format(http.TimeFormat))
}
