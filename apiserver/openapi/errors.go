package openapi

import (
	"net/http"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/web"
)

// commonErrors are the statuses of errors that any operation can have. tokenErrors are those that
// operations which need a token can have in addition.
var (
	commonErrors = []string{"400", "404", "406", "429", "500", "503"}
	tokenErrors  = []string{"401", "403"}
)

// errorFormat describes the errors of one API.
type errorFormat struct {
	// prefix is the first part of the names of the responses in the components.
	prefix  string
	content map[string]content
}

var (
	fhirError = errorFormat{"FHIR", bothDialects(content{Schema: refTo("OperationOutcome")})}
	ahdsError = errorFormat{"AHDS", map[string]content{mediaProblem: {Schema: refTo("Problem")}}}
)

// addErrors adds the responses of errors to an operation: those of all operations, and those with the
// statuses own. If the operation is public, it gets an empty Security and no errors of tokens.
func (c components) addErrors(op *operation, r web.Route, own []string, format errorFormat) {
	all := append(append([]string{}, commonErrors...), own...)
	if r.Public {
		op.Security = &[]security{}
	} else {
		all = append(all, tokenErrors...)
	}
	for _, status := range all {
		if _, success := op.Responses[status]; !success {
			op.Responses[status] = c.errorOf(format, status)
		}
	}
}

// errorOf returns a reference to the response of errors with a status.
func (c components) errorOf(format errorFormat, status string) response {
	name := format.prefix + status
	if _, made := c.Responses[name]; !made {
		code, _ := strconv.Atoi(status) // the statuses of this package are numbers
		described := response{Description: http.StatusText(code), Content: format.content}
		switch code {
		case http.StatusUnauthorized:
			described.Headers = headerRefs("WWW-Authenticate")
		case http.StatusMethodNotAllowed:
			described.Headers = headerRefs("Allow")
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			described.Headers = headerRefs("Retry-After")
		}
		c.Responses[name] = described
	}
	return response{Ref: "#/components/responses/" + name}
}
