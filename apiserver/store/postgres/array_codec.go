package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// arrayCodec encodes []int64, []int32, [][]byte and []string, the arguments with the rows that statements
// insert. Unlike pgx's own codec, which encodes all other values, it needs no allocation and no dynamic
// call for each element.
type arrayCodec struct{ *pgtype.ArrayCodec }

// registerArrays makes a connection use arrayCodec.
func registerArrays(_ context.Context, conn *pgx.Conn) error {
	registerArrayTypes(conn.TypeMap())
	return nil
}

func registerArrayTypes(types *pgtype.Map) {
	for _, oid := range []uint32{pgtype.Int8ArrayOID, pgtype.Int4ArrayOID, pgtype.ByteaArrayOID, pgtype.TextArrayOID} {
		known, ok := types.TypeForOID(oid)
		if !ok {
			continue
		}
		if codec, ok := known.Codec.(*pgtype.ArrayCodec); ok {
			types.RegisterType(&pgtype.Type{Name: known.Name, OID: oid, Codec: arrayCodec{codec}})
		}
	}
}

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch {
		case oid == pgtype.Int8ArrayOID && is[[]int64](value):
			return encodeArray[int64]{pgtype.Int8OID, func(int64) int { return 8 }, func(buf []byte, n int64) []byte {
				return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(n))
			}}
		case oid == pgtype.Int4ArrayOID && is[[]int32](value):
			return encodeArray[int32]{pgtype.Int4OID, func(int32) int { return 4 }, func(buf []byte, n int32) []byte {
				return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(buf, 4), uint32(n))
			}}
		case oid == pgtype.ByteaArrayOID && is[[][]byte](value):
			return encodeArray[[]byte]{pgtype.ByteaOID, func(value []byte) int { return len(value) }, func(buf, value []byte) []byte {
				if value == nil {
					return binary.BigEndian.AppendUint32(buf, nullLength)
				}
				return append(binary.BigEndian.AppendUint32(buf, uint32(len(value))), value...)
			}}
		case oid == pgtype.TextArrayOID && is[[]string](value):
			return encodeArray[string]{pgtype.TextOID, func(value string) int { return len(value) }, func(buf []byte, value string) []byte {
				return append(binary.BigEndian.AppendUint32(buf, uint32(len(value))), value...)
			}}
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

func is[T any](value any) bool {
	_, ok := value.(T)
	return ok
}

// nullLength is the length of a value that is NULL, in Postgres's binary format.
const nullLength = 0xffffffff

// arrayHead is the size in bytes of what comes before the elements of an array.
const arrayHead = 20

// encodeArray encodes a slice as a one-dimensional array with subscripts from 1, in Postgres's
// binary format (array_recv).
type encodeArray[T any] struct {
	element uint32
	// size returns the size of a value in bytes.
	size   func(value T) int
	append func(buf []byte, value T) []byte
}

// Encode implements pgtype.EncodePlan. A nil slice is NULL.
func (e encodeArray[T]) Encode(value any, buf []byte) ([]byte, error) {
	all := value.([]T)
	if all == nil {
		return nil, nil
	}
	size := arrayHead + 4*len(all)
	for _, one := range all {
		size += e.size(one)
	}
	if cap(buf)-len(buf) < size { // double the capacity, because more arguments follow; append adds a quarter
		buf = append(make([]byte, 0, max(len(buf)+size, 2*cap(buf))), buf...)
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
