package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// columns reads the columns of a row one after the other, as the protocol has them. Scan
// looks up how to for each value, which comes to more than all else about a row.
type columns struct {
	fields []pgconn.FieldDescription
	values [][]byte
	// err is the first fault; what is read after it is zero.
	err error
}

func columnsOf(row pgx.CollectableRow) *columns {
	return &columns{fields: row.FieldDescriptions(), values: row.RawValues()}
}

// take returns the next column, nil if it is NULL. It is the connection's: valid until the
// next row.
func (c *columns) take(oid uint32) []byte {
	if c.err != nil {
		return nil
	}
	if len(c.values) == 0 {
		c.err = fmt.Errorf("read a row: it has no more columns")
		return nil
	}
	field, value := c.fields[0], c.values[0]
	c.fields, c.values = c.fields[1:], c.values[1:]
	// Text is the same in both formats.
	if field.DataTypeOID != oid || oid != pgtype.TextOID && field.Format != pgx.BinaryFormatCode {
		c.err = fmt.Errorf("read a row: column %s has the type %d in format %d, expected is %d in binary", field.Name, field.DataTypeOID, field.Format, oid)
		return nil
	}
	return value
}

// fixed returns the next column, which has so many bytes.
func (c *columns) fixed(oid uint32, size int) []byte {
	value := c.take(oid)
	if c.err == nil && len(value) != size {
		c.err = fmt.Errorf("read a row: a value of type %d has %d bytes, expected are %d", oid, len(value), size)
	}
	if c.err != nil {
		return make([]byte, size)
	}
	return value
}

func (c *columns) int64() int64 { return int64(binary.BigEndian.Uint64(c.fixed(pgtype.Int8OID, 8))) }

func (c *columns) int16() int16 { return int16(binary.BigEndian.Uint16(c.fixed(pgtype.Int2OID, 2))) }
func (c *columns) bool() bool   { return c.fixed(pgtype.BoolOID, 1)[0] != 0 }

// text and bytes are the connection's: valid until the next row.
func (c *columns) text() []byte  { return c.take(pgtype.TextOID) }
func (c *columns) bytes() []byte { return c.take(pgtype.ByteaOID) }
