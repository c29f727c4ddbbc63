package postgres

import (
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

// packedBody is what is stored of a body, taken apart.
type packedBody struct {
	codec                byte
	idOffset, metaOffset int
	rest                 []byte
	// size is what the text comes to.
	size int
}

func readPacked(packed []byte) (packedBody, error) {
	if len(packed) == 0 {
		return packedBody{}, errBadBody
	}
	codec, rest := packed[0], packed[1:]
	if codec == codecNone {
		return packedBody{}, nil
	}
	idOffset, n := binary.Uvarint(rest)
	if n <= 0 {
		return packedBody{}, errBadBody
	}
	metaOffset, m := binary.Uvarint(rest[n:])
	if m <= 0 {
		return packedBody{}, errBadBody
	}
	b := packedBody{codec: codec, idOffset: int(idOffset), metaOffset: int(metaOffset), rest: rest[n+m:]}
	switch codec {
	case codecPlain:
		b.size = len(b.rest)
		return b, nil
	case codecS2:
		size, err := s2.DecodedLen(b.rest)
		if err == nil && size > maxBody {
			err = s2.ErrTooLarge
		}
		if err != nil {
			return packedBody{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		b.size = size
		return b, nil
	default:
		return packedBody{}, fmt.Errorf("%w: codec %d is not known", errBadBody, codec)
	}
}

// unpack writes the text into room, which is empty and has the size.
func (b packedBody) unpack(room []byte) (store.Body, error) {
	body := store.Body{IDOffset: b.idOffset, MetaOffset: b.metaOffset}
	switch b.codec {
	case codecNone:
		return store.Body{}, nil
	case codecPlain:
		room = append(room, b.rest...)
		body.JSON = room
		return body, nil
	default:
		var err error
		if body.JSON, err = dictionary.Decode(room, b.rest); err != nil {
			return store.Body{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		return body, nil
	}
}

// unpackBody shares nothing with what it reads.
func unpackBody(packed []byte) (store.Body, error) {
	b, err := readPacked(packed)
	if err != nil {
		return store.Body{}, err
	}
	return b.unpack(make([]byte, 0, b.size))
}

// noBody is what is stored of a tombstone's.
var noBody = []byte{codecNone}
