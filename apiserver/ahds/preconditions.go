package ahds

import (
	"regexp"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// etag returns the ETag of a version. It is strong.
func etag(rec store.Record) web.ETag { return tagOf(rec.Version, rec.UID) }

// tagOf returns the ETag of a version. The hash of the UID distinguishes a record or resource from an
// earlier, deleted one with the same id.
func tagOf(version int64, uid string) web.ETag {
	const hashLength = 8
	return web.ETag{Opaque: strconv.FormatInt(version, 10) + "-" + digest([]byte(uid))[:hashLength]}
}

// etagSyntax is the syntax of ETags. RFC 9110 §8.8.3.
var etagSyntax = regexp.MustCompile(`^(W/)?"([\x21\x23-\x7e\x80-\xff]*)"$`)

// precondition returns the If-Match of a write. Writes support neither If-None-Match nor If-Unmodified-Since,
// which If-Match overrides (RFC 9110 §13.2.2). Errors: fielderror.Errors if the request has one of them,
// *web.ETagError.
func (r *request) precondition() (web.ETags, error) {
	if len(r.Header.Values("If-None-Match")) > 0 {
		return web.ETags{}, unsupportedPrecondition("If-None-Match", "send If-Match, or create with an id of your own to create only once")
	}
	ifMatch, err := web.ParsePrecondition(r.Header, "If-Match", etagSyntax)
	if err == nil && !ifMatch.Given && len(r.Header.Values("If-Unmodified-Since")) > 0 {
		return web.ETags{}, unsupportedPrecondition("If-Unmodified-Since", "send If-Match")
	}
	return ifMatch, err
}

func unsupportedPrecondition(header, advice string) error {
	return fielderror.Errors{{In: fielderror.Header, At: header, Code: fielderror.CodeInvalidHeader, Detail: header + " is not supported by writes; " + advice}}
}

// checkIfMatch returns an error if the current ETag of a record or resource does not match. Without
// If-Match every ETag matches. Errors: *preconditionError.
func checkIfMatch(ifMatch web.ETags, current web.ETag) error {
	if ifMatch.Given && !ifMatch.MatchStrong(current) {
		return &preconditionError{current: current}
	}
	return nil
}
