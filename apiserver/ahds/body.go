package ahds

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
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
	limit := cmp.Or(r.site.MaxBodySize, defaultMaxBodySize)
	if r.ContentLength > limit {
		return nil, &tooLargeError{limit: limit}
	}
	var source io.Reader = http.MaxBytesReader(w, r.Body, limit)
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
	case "gzip":
		inflate, err := gzip.NewReader(source)
		if err != nil {
			return nil, bodyError(err, limit)
		}
		source = inflate
	default:
		return nil, &encodingError{encoding: encoding}
	}
	var buffer bytes.Buffer
	buffer.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead) // ReadFrom wants room at the end too
	if n, err := buffer.ReadFrom(io.LimitReader(source, limit+1)); err != nil {
		return nil, bodyError(err, limit)
	} else if n > limit {
		return nil, &tooLargeError{limit: limit}
	}
	return buffer.Bytes(), nil
}

// bodyError tells a body that is too large from one that is broken.
func bodyError(err error, limit int64) error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &tooLargeError{limit: limit}
	}
	return fault.Faults{{Code: fault.CodeUnparseable, Detail: "the body cannot be read: " + err.Error()}}
}
