package postgres

import "sync"

// pageBuffer is the memory for reading a page: its rows, and the states and hits decoded from them.
// It is reused for other pages by way of a sync.Pool.
type pageBuffer struct {
	rows   rowBuffer
	states []state
	hits   []hit
}

// The maximum sizes of a buffer in the pool. A larger buffer is not returned to the pool.
const (
	maxPooledBytes = 1 << 20
	maxPooledRows  = 256
)

var pageBuffers = sync.Pool{New: func() any { return &pageBuffer{} }}

// newPageBuffer returns a buffer from the pool. The caller must release it when nothing refers to
// its memory any more.
func newPageBuffer() *pageBuffer { return pageBuffers.Get().(*pageBuffer) }

func (b *pageBuffer) release() {
	if cap(b.rows.bytes) > maxPooledBytes || cap(b.states) > maxPooledRows {
		return
	}
	b.rows.reset()
	clear(b.states[:cap(b.states)]) // an earlier read into the buffer may have had more rows
	clear(b.hits[:cap(b.hits)])
	pageBuffers.Put(b)
}

// resize sets the lengths of states and hits to the number of rows.
func (b *pageBuffer) resize() {
	n := b.rows.len()
	if n > cap(b.states) {
		b.states, b.hits = make([]state, n), make([]hit, n)
	}
	b.states, b.hits = b.states[:n], b.hits[:n]
}
