package fhir

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxLag returns the lag that the response to a search may have, so that a read replica may answer. It
// is 0, the default, for an entry of a Bundle, because the entry may have to see the writes of other
// entries.
func (r *request) maxLag() time.Duration {
	if r.inBundle {
		return 0
	}
	return acceptedLag(r.Header)
}

// acceptedLag returns the max-stale of the field Cache-Control of a request (RFC 9111 §5.2.1.2), or the
// max-age if that is less. The result is 0 without max-stale, with no-cache or no-store, or if
// max-stale or max-age has no valid number of seconds. Of a repeated directive, the least number
// counts.
func acceptedLag(header http.Header) time.Duration {
	accepted, limit, stale := time.Duration(0), time.Duration(-1), false
	for _, directive := range strings.Split(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-cache", "no-store":
			return 0
		case "max-stale":
			if seconds := deltaSeconds(value); !stale || seconds < accepted {
				accepted, stale = seconds, true
			}
		case "max-age":
			if seconds := deltaSeconds(value); limit < 0 || seconds < limit {
				limit = seconds
			}
		}
	}
	if limit >= 0 {
		accepted = min(accepted, limit)
	}
	return accepted
}

// deltaSeconds parses a number of seconds (RFC 9111 §1.2.2), and returns 0 for an invalid number. A
// number of 2³¹ or more becomes 2³¹-1.
func deltaSeconds(value string) time.Duration {
	seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// setAge sets the field Age (RFC 9111 §5.1) of a response from a read replica to its lag in seconds,
// rounded up. A response from the primary has no Age.
func setAge(header http.Header, lag time.Duration) {
	if lag > 0 {
		header.Set("Age", strconv.FormatInt(int64((lag+time.Second-1)/time.Second), 10))
	}
}
