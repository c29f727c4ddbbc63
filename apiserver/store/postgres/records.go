package postgres

import "github.com/paddock-health/paddock/apiserver/store"

// maxSharedBytes is the maximum size in bytes of a page whose bodies share one allocation. Bodies
// of a larger page have allocations of their own, because a shared allocation is kept in memory as
// long as any of its bodies is in use.
const maxSharedBytes = 256 << 10

// unpackRecords returns the records of the hits on a page, with decompressed bodies.
func (r *searcher) unpackRecords(hits []hit) ([]store.Record, error) {
	size := 0
	for i := range hits {
		size += hits[i].body.size
	}
	var shared []byte
	if size <= maxSharedBytes {
		shared = make([]byte, size)
	}
	records := make([]store.Record, len(hits))
	for i := range hits {
		at, n := hits[i].state, hits[i].body.size
		var buffer []byte
		if size <= maxSharedBytes {
			buffer, shared = shared[:0:n], shared[n:]
		} else {
			buffer = make([]byte, 0, n)
		}
		var err error
		if at.body, err = hits[i].body.unpack(buffer); err != nil {
			return nil, decodeError(at.key, at.version, err)
		}
		records[i] = r.site.recordOf(at, &r.texts)
	}
	return records, nil
}
