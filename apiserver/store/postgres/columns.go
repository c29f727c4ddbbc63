package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// columns decodes the columns of a row from the binary protocol, one after the other. pgx's Scan
// looks up a decoder for each value, which takes longer than all other work on a row.
type columns struct {
	fields []pgconn.FieldDescription
	values [][]byte
	// err is the first error. Values that are read after it are zero.
	err error
}

func columnsOf(row pgx.CollectableRow) *columns {
	return &columns{fields: row.FieldDescriptions(), values: row.RawValues()}
}

// take returns the next column, which must have the type oid. It returns nil if the column is NULL,
// and after an error. The slice is valid until the next row.
func (c *columns) take(oid uint32) []byte {
	if c.err != nil {
		return nil
	}
	if len(c.values) == 0 {
		c.err = fmt.Errorf("read row: the row has fewer columns than are read")
		return nil
	}
	field, value := c.fields[0], c.values[0]
	c.fields, c.values = c.fields[1:], c.values[1:]
	// Text has the same encoding in the text and the binary format.
	if field.DataTypeOID != oid || oid != pgtype.TextOID && field.Format != pgx.BinaryFormatCode {
		c.err = fmt.Errorf("read row: column %s has type %d in format %d; it must have type %d in binary format", field.Name, field.DataTypeOID, field.Format, oid)
		return nil
	}
	return value
}

// fixed returns the next column, which must have size bytes. After an error, all bytes are 0.
func (c *columns) fixed(oid uint32, size int) []byte {
	value := c.take(oid)
	if c.err == nil && len(value) != size {
		c.err = fmt.Errorf("read row: a value of the type with OID %d has %d bytes; it must have %d", oid, len(value), size)
	}
	if c.err != nil {
		return make([]byte, size)
	}
	return value
}

func (c *columns) int64() int64 { return int64(binary.BigEndian.Uint64(c.fixed(pgtype.Int8OID, 8))) }

func (c *columns) int16() int16 { return int16(binary.BigEndian.Uint16(c.fixed(pgtype.Int2OID, 2))) }
func (c *columns) bool() bool   { return c.fixed(pgtype.BoolOID, 1)[0] != 0 }

// text and bytes return slices that are valid until the next row.
func (c *columns) text() []byte  { return c.take(pgtype.TextOID) }
func (c *columns) bytes() []byte { return c.take(pgtype.ByteaOID) }
