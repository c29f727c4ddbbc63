package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// TooLargeError says that a body is too large.
type TooLargeError struct {
	// Limit is in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body is larger than the %d bytes that this site takes", e.Limit)
}

// EncodingError says that a body is compressed in a way that is not taken.
type EncodingError struct{ Encoding string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("a body with the Content-Encoding %.60q is not taken; send gzip or none", e.Encoding)
}

// BrokenBodyError says that a body ended early, or is not compressed as it says.
type BrokenBodyError struct{ cause error }

func (e *BrokenBodyError) Error() string { return fmt.Sprintf("the body cannot be read: %v", e.cause) }

func (e *BrokenBodyError) Unwrap() error { return e.cause }

// mostAnnounced is how much room is made for a body before it comes.
const mostAnnounced = 64 << 10

// ReadBody reads the whole body of a request, inflated, within a limit in bytes.
// Errors: *TooLargeError, *EncodingError, *BrokenBodyError.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
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
	// What is announced may never come. ReadFrom wants room at the end too.
	buffer.Grow(int(min(max(r.ContentLength, 0), mostAnnounced)) + bytes.MinRead)
	if n, err := buffer.ReadFrom(io.LimitReader(source, limit+1)); err != nil {
		return nil, bodyError(err, limit)
	} else if n > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return buffer.Bytes(), nil
}

// bodyError tells a body that is too large from one that is broken.
func bodyError(err error, limit int64) error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return &TooLargeError{Limit: limit}
	}
	return &BrokenBodyError{cause: err}
}
