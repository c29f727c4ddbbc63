package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fetched are rows as they came, away from their connection, which others wait for. What
// is made of them is made knowing how many there are.
type fetched struct {
	fields []pgconn.FieldDescription
	bytes  []byte
	// ends are where the values end in bytes, isNull for one that is NULL.
	ends []int
	// took is how long others waited for them who asked in the same session. Of rows that were
	// asked for alone it is 0: how long they take says how many are asked at a time.
	took time.Duration
	// most is how many bytes are kept of what a statement gives, beside its first row; cut are
	// the numbers of the last rows of those that gave more.
	most int
	cut  []int
}

// mostOnPage is how many bytes there are on a page, beside its first record: what is asked
// for by number may be large.
const mostOnPage = 32 << 20

const isNull = -1

func (f *fetched) empty() {
	f.took = 0
	clear(f.fields)
	f.fields, f.bytes, f.ends, f.cut = f.fields[:0], f.bytes[:0], f.ends[:0], f.cut[:0]
}

// size is about how many bytes the rows take.
func (f *fetched) size() int { return len(f.bytes) + 8*len(f.ends) }

// take takes rows in, all of them of the same columns, up to one that is too many.
func (f *fetched) take(rows pgx.Rows) error {
	defer rows.Close()
	first, before := f.len(), f.size()
	for rows.Next() {
		if f.len() > first && f.size()-before > f.most {
			f.cut = append(f.cut, f.len()-1)
			break
		}
		if len(f.fields) == 0 {
			f.fields = append(f.fields, rows.FieldDescriptions()...)
		}
		for _, value := range rows.RawValues() {
			if value == nil {
				f.ends = append(f.ends, isNull)
				continue
			}
			f.bytes = append(f.bytes, value...)
			f.ends = append(f.ends, len(f.bytes))
		}
	}
	return rows.Err()
}

// len is how many rows there are.
func (f *fetched) len() int { return len(f.ends) / max(1, len(f.fields)) }

// each visits the rows. The columns are valid until the next one, what bytes returns of
// them until release.
func (f *fetched) each(visit func(n int, c *columns) error) error {
	values := make([][]byte, len(f.fields))
	var c columns
	begin := 0
	for n := range f.len() {
		for i, end := range f.ends[n*len(f.fields) : (n+1)*len(f.fields)] {
			if values[i] = nil; end != isNull {
				values[i], begin = f.bytes[begin:end:end], end
			}
		}
		c.fields, c.values = f.fields, values
		if err := visit(n, &c); err != nil {
			return err
		}
	}
	return nil
}
