package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultDelays are the pauses after failed attempts of a webhook that does not set spec.retry. The
// first attempt is immediate.
var DefaultDelays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// jitter is the fraction of a pause by which it varies randomly, up and down. It spreads the
	// retries of deliveries that failed at the same time.
	jitter = 0.2
	// maxRetryAfter is the maximum pause that a receiver can request. A longer pause is shortened to
	// maxRetryAfter.
	maxRetryAfter = 24 * time.Hour
)

// pause returns the pause after a failed attempt. attempts is the number of attempts before it in
// the schedule, and random is in [0, 1). pause reports false if the schedule has ended.
func pause(delays []time.Duration, attempts int, random float64) (time.Duration, bool) {
	if attempts >= len(delays) {
		return 0, false
	}
	factor := 1 - jitter + 2*jitter*random
	return time.Duration(float64(delays[attempts]) * factor), true
}

// retryAfter returns the pause that the header Retry-After requests, in seconds or by a date (RFC
// 9110 §10.2.3). It is 0 without the header, for an invalid one or for a date in the past, and at most
// maxRetryAfter.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if isDigits(value) {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // also if the number is too large for int64
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }
