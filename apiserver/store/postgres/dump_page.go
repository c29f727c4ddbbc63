package postgres

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// bodyBlock is the size in bytes of the blocks of memory in which a page of a dump has its bodies. A
// body that does not fit into the rest of a block begins a new block.
const bodyBlock = 256 << 10

// dumpBuilder makes a page of a dump from rows. The records of the page share memory, because a page is
// used and dropped as a whole.
type dumpBuilder struct {
	now   time.Time
	texts texts
	// versions are the versions of all records, in the order of the page. ends are the numbers of
	// versions up to the end of each record.
	versions []store.Record
	ends     []int
	// free is the unused rest of the last block of bodies, and size the length of all bodies in bytes.
	free []byte
	size int
}

// add adds the version in the next columns of a row. It returns full without adding the version if the
// version is the first one of a record, and the bodies before it exceed maxBytes.
func (b *dumpBuilder) add(c *columns, maxBytes int) (full bool, err error) {
	var v scannedVersion
	if err := v.scan(c, &b.texts); err != nil {
		return false, err
	}
	r := &v.record
	n := len(b.versions)
	switch {
	case n > 0 && b.versions[n-1].Key == r.Key:
		r.Key = b.versions[n-1].Key
	case b.size > maxBytes:
		return true, nil
	default:
		b.ends = append(b.ends, n)
	}
	body, err := parseBody(v.body)
	if err != nil {
		return false, decodeError(r.Key, r.Version, err)
	}
	if body.size > len(b.free) {
		b.free = make([]byte, max(body.size, bodyBlock))
	}
	if r.Body, err = body.unpack(b.free[:0:body.size]); err != nil {
		return false, decodeError(r.Key, r.Version, err)
	}
	b.free = b.free[body.size:]
	b.size += body.size
	r.Claims = store.ActiveClaims(r.Claims, b.now)
	b.versions = append(b.versions, *r)
	b.ends[len(b.ends)-1] = n + 1
	return false, nil
}

// records returns the records of the page.
func (b *dumpBuilder) records() []store.Dumped {
	records := make([]store.Dumped, len(b.ends))
	begin := 0
	for i, end := range b.ends {
		versions := b.versions[begin:end:end]
		slices.SortFunc(versions, func(a, b store.Record) int { return cmp.Compare(a.Version, b.Version) })
		records[i] = store.Dumped{Key: versions[0].Key, Versions: versions}
		begin = end
	}
	return records
}
