package ahds

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	typeJSON       = "application/json"
	typeProblem    = "application/problem+json"
	typeMergePatch = "application/merge-patch+json"
	typeCalendar   = "text/calendar"
)

// checkAccept returns an error if the Accept header excludes a media type. Error responses are
// problem documents whatever the header says. Errors: *web.NotAcceptableError.
func checkAccept(header http.Header, produces string) error {
	produces = cmp.Or(produces, typeJSON)
	accept := strings.Join(header.Values("Accept"), ",")
	if quality, _ := web.Preference(web.ParseAccept(header), produces); quality > 0 || strings.TrimSpace(accept) == "" {
		return nil
	}
	return &web.NotAcceptableError{In: "Accept", Value: accept, Supported: []string{produces}}
}
