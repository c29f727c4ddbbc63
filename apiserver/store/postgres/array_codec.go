package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// arrayCodec encodes []int64 and [][]byte, the arguments with the rows that statements insert. Unlike
// pgx's own codec, which encodes all other values, it needs no allocation and no dynamic call for
// each element.
type arrayCodec struct{ *pgtype.ArrayCodec }

// registerArrays makes a connection use arrayCodec.
func registerArrays(_ context.Context, conn *pgx.Conn) error {
	types := conn.TypeMap()
	for _, oid := range []uint32{pgtype.Int8ArrayOID, pgtype.ByteaArrayOID} {
		known, ok := types.TypeForOID(oid)
		if !ok {
			continue
		}
		if codec, ok := known.Codec.(*pgtype.ArrayCodec); ok {
			types.RegisterType(&pgtype.Type{Name: known.Name, OID: oid, Codec: arrayCodec{codec}})
		}
	}
	return nil
}

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []int64:
			return encodeArray[int64]{pgtype.Int8OID, func(buf []byte, n int64) []byte {
				return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(n))
			}}
		case [][]byte:
			return encodeArray[[]byte]{pgtype.ByteaOID, func(buf, value []byte) []byte {
				if value == nil {
					return binary.BigEndian.AppendUint32(buf, nullLength)
				}
				return append(binary.BigEndian.AppendUint32(buf, uint32(len(value))), value...)
			}}
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// nullLength is the length of a value that is NULL, in Postgres's binary format.
const nullLength = 0xffffffff

// encodeArray encodes a slice as a one-dimensional array with subscripts from 1, in Postgres's
// binary format (array_recv).
type encodeArray[T any] struct {
	element uint32
	append  func(buf []byte, value T) []byte
}

// Encode implements pgtype.EncodePlan. A nil slice is NULL.
func (e encodeArray[T]) Encode(value any, buf []byte) ([]byte, error) {
	all := value.([]T)
	if all == nil {
		return nil, nil
	}
	dimensions := uint32(min(1, len(all)))
	buf = binary.BigEndian.AppendUint32(buf, dimensions)
	buf = binary.BigEndian.AppendUint32(buf, dimensions) // elements may be NULL
	buf = binary.BigEndian.AppendUint32(buf, e.element)
	if dimensions > 0 {
		buf = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(buf, uint32(len(all))), 1)
	}
	for _, one := range all {
		buf = e.append(buf, one)
	}
	return buf, nil
}
