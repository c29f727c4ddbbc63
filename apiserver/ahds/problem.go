package ahds

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// problem is an error response. RFC 9457.
type problem struct {
	status      int
	code        string
	detail      string
	header      map[string]string
	fieldErrors fielderror.Errors
	// conflicting is the id of the slot that prevents a change of a slot. It is empty for other
	// problems.
	conflicting string
}

// encode returns the problem document. Its member type is the address of the page that explains its
// code.
func (p problem) encode(pages errorcode.Pages, instance string) []byte {
	w := schema.NewWriter(nil)
	w.String("type", pages.Of(p.code))
	w.String("title", errorcode.Text(p.code))
	w.Raw("status", jsontext.Value(strconv.Itoa(p.status)))
	w.String("detail", p.detail)
	w.String("instance", instance)
	w.String("code", p.code)
	if p.conflicting != "" {
		w.String("conflictingSlotId", p.conflicting)
	}
	if len(p.fieldErrors) > 0 {
		errs := []byte{'['}
		for i, f := range p.fieldErrors {
			if i > 0 {
				errs = append(errs, ',')
			}
			each := schema.NewWriter(errs)
			each.String([]string{fielderror.Body: "pointer", fielderror.Parameter: "parameter", fielderror.Header: "header"}[f.In], f.At)
			each.String("code", f.Code)
			each.String("detail", f.Detail)
			errs = each.Done()
		}
		w.Raw("errors", append(errs, ']'))
	}
	return w.Done()
}

// problemOf returns the problem of an error. Only this function and web.FailureOf map errors to
// statuses and codes.
func problemOf(err error) problem {
	for _, known := range []func(error) (problem, bool){requestProblem, slotProblem, storeProblem} {
		if p, ok := known(err); ok {
			return p
		}
	}
	return problemFrom(web.FailureOf(err))
}

// problemFrom returns a failure as a problem.
func problemFrom(f web.Failure) problem {
	return problem{status: f.Status, code: f.Code, detail: f.Detail, header: f.Header}
}

// with returns the problem with one header field in place of all its header fields.
func (p problem) with(name, value string) problem {
	p.header = map[string]string{name: value}
	return p
}

// requestProblem returns the problem of an error in the request.
func requestProblem(err error) (problem, bool) {
	var (
		errs         fielderror.Errors
		tag          *web.ETagError
		header       *access.HeaderError
		mediaType    *web.MediaTypeError
		encoding     *web.EncodingError
		broken       *web.BrokenBodyError
		streams      *streamsError
		precondition *preconditionError
		taken        *idTakenError
		reused       *keyReusedError
		eventTaken   *eventTakenError
		eventType    *eventTypeUnknownError
	)
	say := func(status int, code string) problem { return problem{status: status, code: code, detail: err.Error()} }
	switch {
	case errors.As(err, &errs):
		return problem{status: http.StatusBadRequest, code: codeInvalidRequest, detail: summary(errs), fieldErrors: errs}, true
	case errors.As(err, &tag):
		return problemOf(fielderror.Errors{{In: fielderror.Header, At: tag.Header, Code: fielderror.CodeInvalidHeader, Detail: fielderror.Quote(tag.Item) + ` is not an ETag; send * or an ETag as it was received, with its quotes`}}), true
	case errors.As(err, &header):
		return problemOf(fielderror.Errors{{In: fielderror.Header, At: header.Name, Code: fielderror.CodeInvalidHeader, Detail: header.Problem}}), true
	case errors.As(err, &mediaType):
		// RFC 5789 §2.2 and RFC 9110 §15.5.16.
		name := map[bool]string{true: "Accept-Patch", false: "Accept"}[mediaType.Supported[0] == typeMergePatch]
		return problemFrom(web.FailureOf(err).With(name, strings.Join(mediaType.Supported, ", "))), true
	case errors.As(err, &encoding):
		return problemFrom(web.FailureOf(err).With("Accept-Encoding", "gzip, identity")), true
	case errors.As(err, &broken):
		return problem{status: http.StatusBadRequest, code: codeInvalidRequest, detail: err.Error(), fieldErrors: fielderror.Errors{{Code: fielderror.CodeUnparseable, Detail: err.Error()}}}, true
	case errors.As(err, &streams):
		return problemFrom(web.RetryLater(http.StatusTooManyRequests, web.CodeTooManyRequests, err.Error())), true
	case errors.As(err, &precondition):
		return say(http.StatusPreconditionFailed, codeVersionConflict).with("ETag", precondition.current.String()), true
	case errors.As(err, &taken):
		return say(http.StatusConflict, codeIDTaken), true
	case errors.As(err, &eventTaken):
		return say(http.StatusConflict, codeIDTaken), true
	case errors.As(err, &eventType):
		return say(http.StatusNotFound, codeNotFound), true
	case errors.As(err, &reused):
		return say(http.StatusUnprocessableEntity, codeKeyReused), true
	}
	return problem{}, false
}

// summary returns the text of a single error with its location, or the number of errors if there
// are several.
func summary(errs fielderror.Errors) string {
	if len(errs) == 1 {
		return cmp.Or(errs[0].At, "the request") + ": " + errs[0].Detail
	}
	return "the request has " + strconv.Itoa(len(errs)) + ` invalid fields, listed in "errors"`
}

// slotProblem returns the problem of an error that prevents a change of a slot: its own state, or a
// booking or hold of another slot.
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
			detail: "slot " + claim.Holder.ID + " of the same resource is booked or held at that time; choose another time or resource",
		}, true
	}
	return problem{}, false
}

// storeProblem returns the problem of an error of package store or delivery.
func storeProblem(err error) (problem, bool) {
	switch {
	case store.IsAbsent(err):
		return problem{status: http.StatusNotFound, code: codeNotFound, detail: "the record, webhook or delivery in the request does not exist, or is no longer kept; check its id or token"}, true
	case errors.Is(err, delivery.ErrContentGone):
		return problem{status: http.StatusGone, code: codeContentGone, detail: delivery.ErrContentGone.Error() + ", so the delivery cannot be sent again; read the record that its subject names, if it has one"}, true
	case store.IsConflict(err):
		return problem{status: http.StatusConflict, code: codeVersionConflict, detail: "the record was changed by another request; read it again and retry"}, true
	case errors.Is(err, store.ErrQueryTimeout):
		return problemFrom(web.RetryLater(http.StatusServiceUnavailable, codeQueryTimeout, store.ErrQueryTimeout.Error()+"; use narrower filters or an earlier page")), true
	}
	return problem{}, false
}
