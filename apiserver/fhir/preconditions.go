package fhir

import (
	"net/http"
	"regexp"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// etag returns the ETag of a version. R4 http.html#versioning.
func etag(version int64) web.ETag {
	return web.ETag{Weak: true, Opaque: strconv.FormatInt(version, 10)}
}

// The syntax of ETags. Weak and strong ETags are compared weakly, because FHIR's ETags are always
// weak. readETagSyntax, for reads, also accepts a versionId without quotes, which fhirpy sends.
var (
	etagSyntax     = regexp.MustCompile(`^(W/)?"([^"]*)"$`)
	readETagSyntax = regexp.MustCompile(`^(?:(W/)?"([^"]*)"|([0-9]+))$`)
)

// preconditions are the preconditions in the header of a write.
type preconditions struct {
	// ifMatch has the versions in If-Match. If it is given, the record must have one of them.
	ifMatch web.ETags
	// absent is true if the record must not exist (If-None-Match: *).
	absent bool
}

// parsePreconditions parses the preconditions of an update, a patch or a delete. Errors: *web.ETagError,
// *invalidError.
func parsePreconditions(header http.Header) (preconditions, error) {
	ifMatch, err := web.ParsePrecondition(header, "If-Match", etagSyntax)
	if err != nil {
		return preconditions{}, err
	}
	ifNoneMatch, err := web.ParsePrecondition(header, "If-None-Match", etagSyntax)
	if err != nil {
		return preconditions{}, err
	}
	invalid := func(diagnostics string) (preconditions, error) {
		return preconditions{}, &invalidError{code: codeInvalidHeader, diagnostics: diagnostics}
	}
	switch {
	case ifNoneMatch.Given && !ifNoneMatch.Any:
		return invalid("If-None-Match on a write can only be *, with which the write succeeds only if the record does not exist; send * or omit the header")
	case ifNoneMatch.Given && ifMatch.Given:
		return invalid("If-Match and If-None-Match cannot be combined; send one of the two")
	case len(header.Values("If-None-Exist")) > 0: // R4 http.html#ccreate
		return invalid("If-None-Exist is only supported on a create by POST; omit the header, or send the criteria in the URL of a conditional interaction, such as PUT {type}?{criteria}")
	case len(header.Values("If-Unmodified-Since")) > 0 && !ifMatch.Given: // which If-Match overrides, RFC 9110 §13.2.2
		return invalid("If-Unmodified-Since is not supported by writes, because several versions can have one second; send If-Match")
	}
	return preconditions{ifMatch: ifMatch, absent: ifNoneMatch.Given}, nil
}

// check returns a *store.PreconditionError if an existing record does not meet the preconditions.
func (c preconditions) check(rec store.Record) error {
	if c.absent || c.ifMatch.Given && !c.ifMatch.MatchWeak(etag(rec.Version)) {
		return &store.PreconditionError{Key: rec.Key, Current: &rec}
	}
	return nil
}

// precondition returns If-Match as the precondition of an operation on the record in the path. If
// If-Match has several versions, precondition reads the record to find which of them is the current
// one. Errors: *store.PreconditionError, those of the store.
func (r *request) precondition(ifMatch web.ETags) (store.Precondition, error) {
	switch {
	case !ifMatch.Given:
		return store.Precondition{}, nil
	case ifMatch.Any:
		return store.Precondition{Present: true}, nil
	case len(ifMatch.Tags) == 1:
		return store.Precondition{Version: versionOf(ifMatch.Tags[0].Opaque)}, nil
	}
	current, err := r.site.Store.Get(r.Context(), r.key())
	if store.IsAbsent(err) {
		return store.Precondition{}, &store.PreconditionError{Key: r.key()}
	}
	if err != nil {
		return store.Precondition{}, err
	}
	if !ifMatch.MatchWeak(etag(current.Version)) {
		return store.Precondition{}, &store.PreconditionError{Key: current.Key, Current: &current}
	}
	return store.Precondition{Version: current.Version}, nil
}

// noVersion is a version that no record has.
const noVersion = -1

// versionOf parses a versionId. It returns noVersion for text that the server does not write.
func versionOf(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 || strconv.FormatInt(version, 10) != text {
		return noVersion
	}
	return version
}
