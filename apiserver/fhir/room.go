package fhir

import (
	"net/http"
	"sync"
)

// rooms are where bundles were written and bodies unpacked: room for a page of 20 is most
// of what a search would allocate.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// mostRoom is how much is kept for the next one.
const mostRoom = 256 << 10

func takeRoom() []byte { return (*rooms.Get().(*[]byte))[:0] }

// keepRoom keeps a room for another request: nothing refers to it any more.
func keepRoom(room []byte) {
	if cap(room) <= mostRoom {
		rooms.Put(&room)
	}
}

// respondBundle answers with a bundle, which ends with that. Another request's bundle is
// written in its place, but not after HTTP/2: there a body may still be on its way when
// the handler returns because the client has reset the stream.
func (r *request) respondBundle(w http.ResponseWriter, b *bundle) error {
	body := b.done()
	if err := r.respond(w, http.StatusOK, body); err != nil {
		return err
	}
	if r.ProtoMajor == 1 {
		keepRoom(body)
	}
	return nil
}
