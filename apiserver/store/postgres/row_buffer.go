package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowBuffer is a copy of the rows of a result. With it, the connection can serve the next query
// before the rows are decoded, and the number of rows is known before decoding. Several results
// with the same columns can be read into one buffer. The zero value is empty. It reads only one row
// of each result, because its maxBytes is 0.
type rowBuffer struct {
	fields []pgconn.FieldDescription
	bytes  []byte
	// ends are the offsets in bytes at which the values end, or isNull.
	ends []int
	// took is the time that the query took while the other queries of its batch waited. It is 0 for a
	// query that was not batched.
	took time.Duration
	// maxBytes is a threshold: when the rows of a result exceed this size in bytes, no more rows of
	// the result are read. truncated has the index of the last row of each result that had more rows.
	maxBytes  int
	truncated []int
}

// maxPageBytes is the maximum size in bytes of the bodies of a page. At the limit the page has
// fewer records than the query asked for, but at least one.
const maxPageBytes = 32 << 20

const isNull = -1

func (b *rowBuffer) reset() {
	b.took = 0
	clear(b.fields)
	b.fields, b.bytes, b.ends, b.truncated = b.fields[:0], b.bytes[:0], b.ends[:0], b.truncated[:0]
}

// size returns the approximate size of the rows in memory, in bytes.
func (b *rowBuffer) size() int { return len(b.bytes) + 8*len(b.ends) }

// read appends the rows of a result until maxBytes is exceeded, and closes the result.
func (b *rowBuffer) read(rows pgx.Rows) error {
	defer rows.Close()
	first, before := b.len(), b.size()
	for rows.Next() {
		if b.len() > first && b.size()-before > b.maxBytes {
			b.truncated = append(b.truncated, b.len()-1)
			break
		}
		if len(b.fields) == 0 {
			b.fields = append(b.fields, rows.FieldDescriptions()...)
		}
		for _, value := range rows.RawValues() {
			if value == nil {
				b.ends = append(b.ends, isNull)
				continue
			}
			b.bytes = append(b.bytes, value...)
			b.ends = append(b.ends, len(b.bytes))
		}
	}
	return rows.Err()
}

// beginsWithNull reports whether the first value of the first row is NULL.
func (b *rowBuffer) beginsWithNull() bool { return len(b.ends) > 0 && b.ends[0] == isNull }

func (b *rowBuffer) len() int { return len(b.ends) / max(1, len(b.fields)) }

// each calls visit for each row. The columns are valid until visit returns. Slices that
// columns.bytes returns are valid until the buffer is reset.
func (b *rowBuffer) each(visit func(n int, c *columns) error) error {
	values := make([][]byte, len(b.fields))
	var c columns
	begin := 0
	for n := range b.len() {
		for i, end := range b.ends[n*len(b.fields) : (n+1)*len(b.fields)] {
			if values[i] = nil; end != isNull {
				values[i], begin = b.bytes[begin:end:end], end
			}
		}
		c.fields, c.values = b.fields, values
		if err := visit(n, &c); err != nil {
			return err
		}
	}
	return nil
}
