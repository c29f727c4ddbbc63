package ahds

import (
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/web"
)

// The codes of problems, in addition to those of packages slot and web. Clients depend on them.
const (
	codeInvalidRequest  = "invalid_request"
	codeNotFound        = "resource_not_found"
	codeVersionConflict = "version_conflict"
	codeIDTaken         = "id_taken"
	codeKeyReused       = "idempotency_key_reused"
	codeQueryTimeout    = "query_timeout"
	codeContentGone     = "content_gone"
)

// preconditionError reports that the current version of a record does not match If-Match.
type preconditionError struct{ current web.ETag }

func (e *preconditionError) Error() string {
	return "If-Match does not match the current version of the record, " + e.current.String() + "; read the record again and send its ETag"
}

// idTakenError reports that a record with the client's id was created with other content.
type idTakenError struct{ id string }

func (e *idTakenError) Error() string {
	return "a record with the id " + fielderror.Quote(e.id) + " was already created with other content; use another id, or replace that record with PUT"
}

// keyReusedError reports that an Idempotency-Key was used for another request.
type keyReusedError struct{}

func (e *keyReusedError) Error() string {
	return "this Idempotency-Key was used for another request; use a new key for each request, and repeat a key only to retry its request"
}
