package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The first byte of a stored body names its codec.
const (
	codecNone  byte = 0 // no body: a tombstone
	codecPlain byte = 1
	codecZstd  byte = 2
)

// maxBody bounds what a stored body may unpack to.
const maxBody = 64 << 20

var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(0)))
)

// must is for values made of constants.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var errBadBody = errors.New("the stored body cannot be read")

// packBody makes what is stored of a body: codec, the two offsets, the text.
func packBody(body store.Body) []byte {
	head := make([]byte, 0, 16+len(body.JSON))
	head = append(head, codecZstd)
	head = binary.AppendUvarint(head, uint64(body.IDOffset))
	head = binary.AppendUvarint(head, uint64(body.MetaOffset))
	packed := encoder.EncodeAll(body.JSON, head)
	if len(packed) >= len(head)+len(body.JSON) {
		packed = append(packed[:len(head)], body.JSON...)
		packed[0] = codecPlain
	}
	return packed
}

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
		body.JSON = rest
		return body, nil
	case codecZstd:
		var err error
		if body.JSON, err = decoder.DecodeAll(rest, nil); err != nil {
			return store.Body{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		return body, nil
	default:
		return store.Body{}, fmt.Errorf("%w: codec %d is not known", errBadBody, codec)
	}
}

// noBody is what is stored of a tombstone's.
var noBody = []byte{codecNone}
