package postgres

import "github.com/paddock-health/paddock/apiserver/store"

// mostShared is up to how many bytes the bodies of a page are one piece of memory: who
// keeps one of them keeps all.
const mostShared = 256 << 10

// records are those at the places of a page, whose bodies are unpacked for them.
func (r *reader) records(places []place) ([]store.Record, error) {
	size := 0
	for i := range places {
		size += places[i].packed.size
	}
	var shared []byte
	if size <= mostShared {
		shared = r.roomFor(size)
	}
	records := make([]store.Record, len(places))
	for i := range places {
		at, n := places[i].at, places[i].packed.size
		var room []byte
		if size <= mostShared {
			room, shared = shared[:0:n], shared[n:]
		} else {
			room = make([]byte, 0, n)
		}
		var err error
		if at.body, err = places[i].packed.unpack(room); err != nil {
			return nil, err
		}
		records[i] = r.site.recordOf(at, &r.texts)
	}
	return records, nil
}

// roomFor is the query's room for bodies, made larger where that is needed.
func (r *reader) roomFor(size int) []byte {
	room := r.query.Room
	if room == nil {
		room = new([]byte)
	}
	if cap(*room) < size {
		*room = make([]byte, size)
	}
	return (*room)[:size]
}
