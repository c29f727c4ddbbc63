package ahds

import (
	"cmp"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/web"
)

// readObject reads the body as a JSON object of one of the media types. The text is the
// body as it was sent.
func (r *request) readObject(w http.ResponseWriter, taken ...string) (object document.Object, text []byte, err error) {
	if err := checkContentType(r.Header, taken...); err != nil {
		return nil, nil, err
	}
	if text, err = r.readBody(w); err != nil {
		return nil, nil, err
	}
	object, err = document.Parse(text)
	return object, text, err
}

// readOptions reads a body that may be left out.
func (r *request) readOptions(w http.ResponseWriter, fields document.Fields) (document.Content, []byte, error) {
	if r.ContentLength == 0 && len(r.TransferEncoding) == 0 {
		content, _, err := fields.Create(nil, document.Identity{})
		return content, nil, err
	}
	object, text, err := r.readObject(w, typeJSON)
	if err != nil {
		return nil, nil, err
	}
	content, _, err := fields.Create(object, document.Identity{})
	return content, text, err
}

// readBody reads the whole body, inflated, within the site's limit.
func (r *request) readBody(w http.ResponseWriter) ([]byte, error) {
	return web.ReadBody(w, r.Request, cmp.Or(r.site.MaxBodySize, defaultMaxBodySize))
}
