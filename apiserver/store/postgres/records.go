package postgres

import "github.com/paddock-health/paddock/apiserver/store"

// mostShared is up to how many bytes the bodies of a page are one piece of memory: who
// keeps one of them keeps all.
const mostShared = 256 << 10

// records are those at the places of a page, whose bodies are unpacked for them.
func (r *reader) records(places []place) ([]store.Record, error) {
	packed := make([]packedBody, len(places))
	size := 0
	for i, at := range places {
		var err error
		if packed[i], err = readPacked(at.packed); err != nil {
			return nil, err
		}
		size += packed[i].size
	}
	var shared []byte
	if size <= mostShared {
		shared = make([]byte, size)
	}
	records := make([]store.Record, len(places))
	for i, at := range places {
		n := packed[i].size
		var room []byte
		if size <= mostShared {
			room, shared = shared[:0:n], shared[n:]
		} else {
			room = make([]byte, 0, n)
		}
		var err error
		if at.at.body, err = packed[i].unpack(room); err != nil {
			return nil, err
		}
		records[i] = r.site.recordOf(at.at, &r.texts)
	}
	return records, nil
}
