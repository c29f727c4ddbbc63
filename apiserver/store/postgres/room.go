package postgres

import "sync"

// room is the memory in which a page is made: its rows, and what they come to on the way to
// records. It goes from one page to the next.
type room struct {
	rows   fetched
	states []state
	places []place
}

// What is kept of a room until the next page.
const (
	mostKeptBytes = 1 << 20
	mostKeptRows  = 256
)

var rooms = sync.Pool{New: func() any { return &room{} }}

// newRoom takes a room, which release gives back once nothing refers to it.
func newRoom() *room { return rooms.Get().(*room) }

func (r *room) release() {
	if cap(r.rows.bytes) > mostKeptBytes || cap(r.states) > mostKeptRows {
		return
	}
	r.rows.empty()
	clear(r.states)
	clear(r.places)
	rooms.Put(r)
}

// furnish makes place for what the rows come to.
func (r *room) furnish() {
	n := r.rows.len()
	if n > cap(r.states) {
		r.states, r.places = make([]state, n), make([]place, n)
	}
	r.states, r.places = r.states[:n], r.places[:n]
}
