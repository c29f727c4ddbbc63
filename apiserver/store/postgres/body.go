package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The first byte of a stored body names its codec.
const (
	codecNone  byte = 0 // no body: a tombstone
	codecPlain byte = 1
	codecS2    byte = 2 // with dictionary
)

// maxBody bounds what a stored body may unpack to.
const maxBody = 64 << 20

var errBadBody = errors.New("the stored body cannot be read")

// packBody makes what is stored of a body: codec, the two offsets, the text.
func packBody(body store.Body) []byte {
	head := make([]byte, 0, 16+len(body.JSON))
	head = append(head, codecS2)
	head = binary.AppendUvarint(head, uint64(body.IDOffset))
	head = binary.AppendUvarint(head, uint64(body.MetaOffset))
	packed := dictionary.Encode(nil, body.JSON)
	if len(packed) >= len(body.JSON) {
		head[0], packed = codecPlain, body.JSON
	}
	return append(head, packed...)
}

// unpackBody shares nothing with what it reads.
func unpackBody(packed []byte) (store.Body, error) {
	if len(packed) == 0 {
		return store.Body{}, errBadBody
	}
	codec, rest := packed[0], packed[1:]
	if codec == codecNone {
		return store.Body{}, nil
	}
	idOffset, n := binary.Uvarint(rest)
	if n <= 0 {
		return store.Body{}, errBadBody
	}
	metaOffset, m := binary.Uvarint(rest[n:])
	if m <= 0 {
		return store.Body{}, errBadBody
	}
	body := store.Body{IDOffset: int(idOffset), MetaOffset: int(metaOffset)}
	rest = rest[n+m:]
	switch codec {
	case codecPlain:
		body.JSON = bytes.Clone(rest)
		return body, nil
	case codecS2:
		size, err := s2.DecodedLen(rest)
		if err == nil && size > maxBody {
			err = s2.ErrTooLarge
		}
		if err == nil {
			body.JSON, err = dictionary.Decode(nil, rest)
		}
		if err != nil {
			return store.Body{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		return body, nil
	default:
		return store.Body{}, fmt.Errorf("%w: codec %d is not known", errBadBody, codec)
	}
}

// noBody is what is stored of a tombstone's.
var noBody = []byte{codecNone}
