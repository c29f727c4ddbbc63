package ahds

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/web"
)

// readObject reads the body as a JSON object. Its media type must be one of those supported. text
// is the body byte for byte.
func (r *request) readObject(w http.ResponseWriter, supported ...string) (object schema.Object, text []byte, err error) {
	if _, _, err := web.ParseContentType(r.Header, supported...); err != nil {
		return nil, nil, err
	}
	if text, err = r.readBody(w); err != nil {
		return nil, nil, err
	}
	object, err = schema.Parse(text)
	return object, text, err
}

// readOptions reads an optional body. All fields have their defaults without a body, or with an empty
// one, which a request in chunks can have.
func (r *request) readOptions(w http.ResponseWriter, fields schema.Fields) (schema.Content, []byte, error) {
	var (
		object schema.Object
		text   []byte
		err    error
	)
	if r.ContentLength != 0 {
		if _, _, err = web.ParseContentType(r.Header, typeJSON); err == nil {
			text, err = r.readBody(w)
		}
	}
	if err == nil && len(text) > 0 {
		object, err = schema.Parse(text)
	}
	if err != nil {
		return nil, nil, err
	}
	content, _, err := fields.Create(object, schema.Identity{})
	return content, text, err
}

// readBody reads and decompresses the whole body. A body beyond the site's limit is an error.
func (r *request) readBody(w http.ResponseWriter) ([]byte, error) {
	return web.ReadBody(w, r.Request, r.site.MaxBodySize())
}
