package robustness

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

const (
	// herdSize is how many records the writers contend for at a time.
	herdSize = 12
	// retirement is the version at which a record makes room for a new one. A
	// history is written anew with every version: long ones would only fill etcd.
	retirement = 40
)

// herd is what the writers know of the records that they contend for.
type herd struct {
	prefix string
	mu     sync.Mutex
	slots  [herdSize]slot
	born   int
}

// slot is one of the records. Its version is the newest that anybody knows of.
type slot struct {
	id      string
	version int64
}

func newHerd(prefix string) *herd {
	h := &herd{prefix: prefix}
	for i := range h.slots {
		h.slots[i] = h.newborn()
	}
	return h
}

func (h *herd) newborn() slot {
	h.born++
	return slot{id: fmt.Sprintf("%s-%d", h.prefix, h.born)}
}

// pick chooses one of the records.
func (h *herd) pick(random *rand.Rand) slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[random.IntN(herdSize)]
}

// saw tells the others of a version, and replaces a record that is too old.
func (h *herd) saw(id string, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.slots {
		s := &h.slots[i]
		if s.id != id {
			continue
		}
		if s.version = max(s.version, version); s.version >= retirement {
			*s = h.newborn()
		}
	}
}

// adopt puts a record that a server named in the place of one of the others.
func (h *herd) adopt(id string, random *rand.Rand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[random.IntN(herdSize)] = slot{id: id, version: 1}
}
