package web

import (
	"fmt"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/limits"
)

// rateLimitHeader returns the header fields of a 429 response: Retry-After (RFC 9110 §10.2.3) and, for
// a limit of a rate, those of draft-ietf-httpapi-ratelimit-headers-10 with the limit and a remaining
// quota of 0.
func rateLimitHeader(e *limits.ExceededError) map[string]string {
	seconds := strconv.Itoa(e.RetrySeconds())
	header := map[string]string{"Retry-After": seconds}
	if e.Quota > 0 {
		header["RateLimit-Policy"] = fmt.Sprintf("%q;q=%d;w=%d", e.Policy, e.Quota, int(e.Window.Seconds()))
		header["RateLimit"] = fmt.Sprintf("%q;r=0;t=%s", e.Policy, seconds)
	}
	return header
}
