package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// TooLargeError is returned for a request body, or a line of one, that exceeds the limit of the site or
// of the API.
type TooLargeError struct {
	// Limit is the maximum size in bytes: of the body or, if Line is true, of a line.
	Limit int64
	// Line is true if a line of the body exceeds the limit. Otherwise the whole body exceeds it.
	Line bool
}

func (e *TooLargeError) Error() string {
	part := "body"
	if e.Line {
		part = "line"
	}
	return fmt.Sprintf("the %s is larger than the site or this API allows; send at most %d bytes", part, e.Limit)
}

// EncodingError is returned for a request body with a Content-Encoding that is not supported.
type EncodingError struct{ Encoding string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("Content-Encoding: %.60q is not supported; send gzip, or omit the header", e.Encoding)
}

// BrokenBodyError is returned for a request body that ends early or cannot be decompressed.
type BrokenBodyError struct {
	// Cause is why the body cannot be read.
	Cause error
}

func (e *BrokenBodyError) Error() string {
	return fmt.Sprintf("the body is incomplete or corrupt: %v; send it again", e.Cause)
}

func (e *BrokenBodyError) Unwrap() error { return e.Cause }

// maxPreallocated is the maximum size in bytes of a buffer that is allocated for a Content-Length
// before the body arrives. For a larger body the buffer grows.
const maxPreallocated = 64 << 10

const (
	// maxDrained is the maximum number of bytes of a refused body that are read and discarded. After
	// that, the response is sent and the connection closed.
	maxDrained = 8 << 20
	// maxDrainTime is how long the rest of a refused body is read.
	maxDrainTime = 10 * time.Second
)

// ReadBody reads and decompresses the whole body of a request. limit is the maximum size in bytes
// before and after decompression. Of a body that is larger, ReadBody discards the rest up to twice the
// limit, at most maxDrained, so that a client that sends the whole body receives the response. Errors:
// *TooLargeError, *EncodingError, *BrokenBodyError.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := readBody(w, r, limit)
	waits := r.ContentLength > limit && r.Header.Get("Expect") != "" // the client sends nothing yet
	if errors.As(err, new(*TooLargeError)) && !waits {
		drain(w, r, min(2*limit, maxDrained))
	}
	return body, err
}

// drain reads and discards up to size bytes of the rest of the body. net/http closes the connection
// half a second after a response if more than 256 KiB of the body are unread. A client that still sends
// then gets a reset in place of the response (RFC 9112 §9.6). drain reads nothing if the body is known
// to be longer, for HTTP/2, in which a response can end before its request, and if the time to read
// cannot be limited.
func drain(w http.ResponseWriter, r *http.Request, size int64) {
	if r.ContentLength > size || r.ProtoMajor != 1 {
		return
	}
	deadline := time.Now().Add(maxDrainTime)
	end, limited := r.Context().Deadline()
	if limited && end.Before(deadline) {
		deadline = end
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(deadline); err != nil { // behind kube-apiserver, or in a Bundle
		return
	}
	// If an error remains, net/http closes the connection after the response.
	if _, err := io.CopyN(io.Discard, r.Body, size); errors.Is(err, io.EOF) {
		_ = control.SetReadDeadline(end) // net/http watches for the end of the connection, which must not time out
	}
}

// readBody is ReadBody without the draining.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &TooLargeError{Limit: limit}
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
		return nil, &EncodingError{Encoding: encoding}
	}
	var buffer bytes.Buffer
	// ReadFrom needs MinRead bytes of free space to detect the end.
	buffer.Grow(int(min(max(r.ContentLength, 0), maxPreallocated)) + bytes.MinRead)
	if n, err := buffer.ReadFrom(io.LimitReader(source, limit+1)); err != nil {
		return nil, bodyError(err, limit)
	} else if n > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return buffer.Bytes(), nil
}

// bodyError converts an error of a read to *TooLargeError or *BrokenBodyError.
func bodyError(err error, limit int64) error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &TooLargeError{Limit: limit}
	}
	return &BrokenBodyError{Cause: err}
}
