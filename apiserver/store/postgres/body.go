package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The codecs of stored bodies. The first byte of a stored body is its codec.
const (
	codecNone  byte = 0 // no body: a tombstone
	codecPlain byte = 1
	codecS2    byte = 2 // with dictionary
)

// maxBodyBytes is the maximum size of a compressed body in bytes after decompression. Reading a
// larger body is an error.
const maxBodyBytes = 64 << 20

var errBadBody = errors.New("the stored body is invalid")

// maxHeadBytes is the maximum number of bytes before the text in a stored body: the codec and two offsets.
const maxHeadBytes = 1 + 2*binary.MaxVarintLen64

// packBody returns a body in its stored form: the codec, the two offsets and the text, compressed
// if that is shorter.
func packBody(body store.Body) []byte {
	stored := make([]byte, 0, maxHeadBytes+s2.MaxEncodedLen(len(body.JSON)))
	stored = append(stored, codecS2)
	stored = binary.AppendUvarint(stored, uint64(body.IDOffset))
	stored = binary.AppendUvarint(stored, uint64(body.MetaOffset))
	packed := dictionary.Encode(stored[len(stored):cap(stored)], body.JSON) // in the memory of stored
	if len(packed) >= len(body.JSON) {
		stored[0], packed = codecPlain, body.JSON
	}
	return append(stored, packed...)
}

// packState returns the body of a version in its stored form, which is noBody for a tombstone.
func packState(at *state) []byte {
	if at.deleted {
		return noBody
	}
	return packBody(at.body)
}

// packedBody is a stored body whose head is parsed. Its text is still compressed.
type packedBody struct {
	codec                byte
	idOffset, metaOffset int
	rest                 []byte
	// size is the length of the decompressed text in bytes.
	size int
}

func parseBody(packed []byte) (packedBody, error) {
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
		if err == nil && size > maxBodyBytes {
			err = s2.ErrTooLarge
		}
		if err != nil {
			return packedBody{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		b.size = size
		return b, nil
	default:
		return packedBody{}, fmt.Errorf("%w: unknown codec %d", errBadBody, codec)
	}
}

// unpack decompresses the body into the memory of buffer, which must be empty and have a capacity of
// at least size.
func (b packedBody) unpack(buffer []byte) (store.Body, error) {
	body := store.Body{IDOffset: b.idOffset, MetaOffset: b.metaOffset}
	switch b.codec {
	case codecNone:
		return store.Body{}, nil
	case codecPlain:
		buffer = append(buffer, b.rest...)
		body.JSON = buffer
		return body, nil
	default:
		var err error
		if body.JSON, err = dictionary.Decode(buffer, b.rest); err != nil {
			return store.Body{}, fmt.Errorf("%w: %w", errBadBody, err)
		}
		return body, nil
	}
}

// unpackBody returns the body that packed encodes. It shares no memory with packed.
func unpackBody(packed []byte) (store.Body, error) {
	b, err := parseBody(packed)
	if err != nil {
		return store.Body{}, err
	}
	return b.unpack(make([]byte, 0, b.size))
}

// noBody is the stored body of a tombstone.
var noBody = []byte{codecNone}
