package fhir

import (
	"net/http"
	"sync"
)

// buffers holds buffers for writing Bundles. Without reuse, they would be most of the memory that a
// search for a page of 20 records allocates.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBufferSize is the capacity in bytes up to which a buffer is kept for reuse. Larger buffers are
// left to the garbage collector.
const maxBufferSize = 256 << 10

func getBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// putBuffer keeps a buffer for another request. The caller must not use it afterwards.
func putBuffer(buffer []byte) {
	if cap(buffer) <= maxBufferSize {
		buffers.Put(&buffer)
	}
}

// respondBundle finishes a Bundle and answers with it. The caller must not use b afterwards,
// because its buffer is reused. With HTTP/2 the buffer is not reused: if the client has reset the
// stream, the body may still be in flight when the handler returns.
func (r *request) respondBundle(w http.ResponseWriter, b *bundleWriter) error {
	body := b.finish()
	if err := r.respond(w, http.StatusOK, body); err != nil {
		return err
	}
	if r.ProtoMajor == 1 {
		putBuffer(body)
	}
	return nil
}
