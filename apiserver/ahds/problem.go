package ahds

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// retryAfter is how many seconds a client should wait for what is away.
const retryAfter = "5"

// problem is an error as it is answered. RFC 9457.
type problem struct {
	status int
	code   string
	detail string
	header map[string]string
	faults fault.Faults
	// conflicting is the id of the slot that stands against a booking.
	conflicting string
}

// typeBase begins the types of problems; the code ends them. RFC 4151.
const typeBase = "tag:paddock.health,2026:problem/"

// document is the body of the answer.
func (p problem) document(instance string) []byte {
	w := document.NewWriter(nil)
	w.String("type", typeBase+p.code)
	w.String("title", title(p.code))
	w.Raw("status", jsontext.Value(strconv.Itoa(p.status)))
	w.String("detail", p.detail)
	w.String("instance", instance)
	w.String("code", p.code)
	if p.conflicting != "" {
		w.String("conflictingSlotId", p.conflicting)
	}
	if len(p.faults) > 0 {
		errs := []byte{'['}
		for i, f := range p.faults {
			if i > 0 {
				errs = append(errs, ',')
			}
			each := document.NewWriter(errs)
			each.String([]string{fault.Body: "pointer", fault.Parameter: "parameter", fault.Header: "header"}[f.In], f.At)
			each.String("code", f.Code)
			each.String("detail", f.Detail)
			errs = each.Done()
		}
		w.Raw("errors", append(errs, ']'))
	}
	return w.Done()
}

// title is a code as words.
func title(code string) string {
	return strings.ToUpper(code[:1]) + strings.ReplaceAll(code[1:], "_", " ")
}

// problemOf is the only place that gives an error its status and its words.
func problemOf(err error) problem {
	for _, known := range []func(error) (problem, bool){requestProblem, slotProblem, accessProblem, storeProblem} {
		if p, ok := known(err); ok {
			return p
		}
	}
	return problem{
		status: http.StatusInternalServerError, code: codeInternal,
		detail: "the server failed; its log has the reason under the X-Request-Id of this answer",
	}
}

// with adds a header field.
func (p problem) with(name, value string) problem {
	p.header = map[string]string{name: value}
	return p
}

// requestProblem knows what is wrong with requests.
func requestProblem(err error) (problem, bool) {
	var (
		faults        fault.Faults
		path          *pathUnknownError
		method        *methodError
		methodUnknown *methodUnknownError
		notAcceptable *notAcceptableError
		mediaType     *mediaTypeError
		encoding      *web.EncodingError
		broken        *web.BrokenBodyError
		tooLarge      *web.TooLargeError
		precondition  *preconditionError
		taken         *idTakenError
		reused        *keyReusedError
	)
	say := func(status int, code string) problem { return problem{status: status, code: code, detail: err.Error()} }
	switch {
	case errors.As(err, &faults):
		return problem{status: http.StatusBadRequest, code: codeInvalidRequest, detail: countOf(faults), faults: faults}, true
	case errors.As(err, &path):
		return say(http.StatusNotFound, codeUnknownPath), true
	case errors.As(err, &method):
		return say(http.StatusMethodNotAllowed, codeMethodNotAllowed).with("Allow", strings.Join(method.allowed, ", ")), true
	case errors.As(err, &methodUnknown):
		return say(http.StatusNotImplemented, codeUnknownMethod), true
	case errors.As(err, &notAcceptable):
		return say(http.StatusNotAcceptable, codeNotAcceptable), true
	case errors.As(err, &mediaType):
		// RFC 5789 §2.2 and RFC 9110 §15.5.16.
		name := map[bool]string{true: "Accept-Patch", false: "Accept"}[mediaType.taken[0] == typeMergePatch]
		return say(http.StatusUnsupportedMediaType, codeUnsupportedMediaType).with(name, strings.Join(mediaType.taken, ", ")), true
	case errors.As(err, &encoding):
		return say(http.StatusUnsupportedMediaType, codeUnsupportedMediaType).with("Accept-Encoding", "gzip, identity"), true
	case errors.As(err, &broken):
		return problem{status: http.StatusBadRequest, code: codeInvalidRequest, detail: err.Error(), faults: fault.Faults{{Code: fault.CodeUnparseable, Detail: err.Error()}}}, true
	case errors.As(err, &tooLarge):
		return say(http.StatusRequestEntityTooLarge, codeTooLarge), true
	case errors.As(err, &precondition):
		return say(http.StatusPreconditionFailed, codeVersionConflict).with("ETag", precondition.current), true
	case errors.As(err, &taken):
		return say(http.StatusConflict, codeIDTaken), true
	case errors.As(err, &reused):
		return say(http.StatusUnprocessableEntity, codeKeyReused), true
	}
	return problem{}, false
}

func countOf(faults fault.Faults) string {
	if len(faults) == 1 {
		return cmp.Or(faults[0].At, "the request") + ": " + faults[0].Detail
	}
	return "the request has " + strconv.Itoa(len(faults)) + " faults; errors tells each"
}

// slotProblem knows what stands against a booking.
func slotProblem(err error) (problem, bool) {
	var (
		refused *slot.RefusedError
		claim   *store.ClaimError
	)
	switch {
	case errors.As(err, &refused):
		return problem{status: http.StatusConflict, code: refused.Code, detail: refused.Detail, conflicting: refused.Slot}, true
	case errors.As(err, &claim) && slot.IsClaim(claim.Claim):
		return problem{
			status: http.StatusConflict, code: slot.CodeConflict, conflicting: claim.Holder.ID,
			detail: "slot " + claim.Holder.ID + " of the same resource is booked or held at that time",
		}, true
	case errors.As(err, &claim):
		return problem{status: http.StatusConflict, code: codeClaimConflict, detail: err.Error()}, true
	}
	return problem{}, false
}

// accessProblem knows the errors of package access.
func accessProblem(err error) (problem, bool) {
	var (
		token     *access.TokenError
		forbidden *access.ForbiddenError
	)
	say := func(status int, code string) problem { return problem{status: status, code: code, detail: err.Error()} }
	switch {
	case errors.As(err, &token):
		return say(http.StatusUnauthorized, codeLoginRequired).with("WWW-Authenticate", token.Challenge()), true
	case errors.As(err, &forbidden):
		return say(http.StatusForbidden, codePermissionDenied), true
	case errors.Is(err, access.ErrSiteHidden):
		return say(http.StatusNotFound, codeUnknownSite), true
	case errors.Is(err, access.ErrUnavailable):
		return say(http.StatusServiceUnavailable, codeUnavailable).with("Retry-After", retryAfter), true
	}
	return problem{}, false
}

// storeProblem knows the errors of package store.
func storeProblem(err error) (problem, bool) {
	var limit *store.LimitError
	say := func(status int, code, detail string) problem {
		return problem{status: status, code: code, detail: detail}
	}
	switch {
	case isAbsent(err):
		return say(http.StatusNotFound, codeNotFound, "there is no such record"), true
	case isConflict(err):
		return say(http.StatusConflict, codeVersionConflict, "the record was changed meanwhile"), true
	case errors.As(err, &limit) && limit.Scope == store.LimitRecord:
		return say(http.StatusRequestEntityTooLarge, codeTooLarge, err.Error()), true
	case errors.As(err, &limit):
		return say(http.StatusInsufficientStorage, codeStorageFull, err.Error()), true
	case errors.Is(err, store.ErrQueryTimeout):
		return say(http.StatusServiceUnavailable, codeQueryTimeout, store.ErrQueryTimeout.Error()+"; ask for less: narrower filters, earlier pages").with("Retry-After", retryAfter), true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return say(http.StatusServiceUnavailable, codeTimeout, "the request took too long"+maybeWritten).with("Retry-After", retryAfter), true
	case errors.Is(err, store.ErrNotReady):
		return say(http.StatusServiceUnavailable, codeUnavailable, store.ErrNotReady.Error()).with("Retry-After", retryAfter), true
	case errors.Is(err, store.ErrUnavailable): // its own words may name hosts
		return say(http.StatusServiceUnavailable, codeUnavailable, store.ErrUnavailable.Error()+maybeWritten).with("Retry-After", retryAfter), true
	}
	return problem{}, false
}

// maybeWritten warns who was not told what became of a write.
const maybeWritten = "; if it was a write, it may have happened all the same"
