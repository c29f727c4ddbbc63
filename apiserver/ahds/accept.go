package ahds

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

const (
	typeJSON       = "application/json"
	typeProblem    = "application/problem+json"
	typeMergePatch = "application/merge-patch+json"
	typeCalendar   = "text/calendar"
)

// checkAccept refuses a request whose client takes no answer of a media type. Errors are
// problem documents whatever it takes.
func checkAccept(header http.Header, produces string) error {
	produces = cmp.Or(produces, typeJSON)
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" || quality(accept, produces) > 0 {
		return nil
	}
	return &notAcceptableError{accept: accept, produces: produces}
}

// quality is what an Accept header gives a media type, by the most specific range that
// covers it. RFC 9110 §12.5.1.
func quality(accept, mediaType string) float64 {
	general, _, _ := strings.Cut(mediaType, "/")
	specificity, best := 0, 0.0
	for item := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(item)
		if err != nil {
			continue // what cannot be read covers nothing
		}
		covers := 1 + slices.Index([]string{"*/*", general + "/*", mediaType}, kind)
		if covers <= specificity {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil || q < 0 || q > 1 {
			q = 1
		}
		specificity, best = covers, q
	}
	return best
}

// checkContentType refuses a body of another media type than those taken. Nothing said is
// JSON.
func checkContentType(header http.Header, taken ...string) error {
	contentType := header.Get("Content-Type")
	if contentType == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(taken, kind) {
		return &mediaTypeError{taken: taken, problem: "a body of the type " + fault.Quote(contentType) + " is not taken here; send " + strings.Join(taken, " or ")}
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return &mediaTypeError{taken: taken, problem: "the charset " + fault.Quote(charset) + " is not taken; JSON is UTF-8"}
	}
	return nil
}
