package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-health/paddock/apiserver/store"
)

// versionRow is a row with versionColumns.
func versionRow(id string, version int64, body string) *columns {
	c := &columns{}
	add := func(oid uint32, value []byte) {
		c.fields = append(c.fields, pgconn.FieldDescription{DataTypeOID: oid, Format: pgx.BinaryFormatCode})
		c.values = append(c.values, value)
	}
	integer := func(n int64) { add(pgtype.Int8OID, binary.BigEndian.AppendUint64(nil, uint64(n))) }
	add(pgtype.TextOID, []byte("Patient"))
	add(pgtype.TextOID, []byte(id))
	integer(version)
	integer(1 << 40)
	integer(1 << 40)
	add(pgtype.BoolOID, []byte{1})
	add(pgtype.ByteaOID, nil)
	add(pgtype.ByteaOID, nil)
	add(pgtype.Int2OID, []byte{0, 1})
	add(pgtype.BoolOID, []byte{0})
	add(pgtype.ByteaOID, packBody(store.Body{JSON: []byte(body)}))
	return c
}

// TestDumpBuilder checks the order of versions, that bodies do not share bytes, and where a page ends.
func TestDumpBuilder(t *testing.T) {
	long := strings.Repeat("x", bodyBlock-10) // the next body needs another block
	const maxBytes = bodyBlock
	var page dumpBuilder
	for _, row := range []*columns{
		versionRow("a", 2, "a2"), versionRow("a", 3, "a3"), versionRow("a", 1, "a1"),
		versionRow("b", 1, long), versionRow("c", 1, "c1-longer-than-the-rest"), versionRow("c", 2, "c2"),
	} {
		if full, err := page.add(row, maxBytes); full || err != nil {
			t.Fatalf("full %t, error %v", full, err)
		}
	}
	if full, err := page.add(versionRow("d", 1, "d1"), maxBytes); !full || err != nil {
		t.Errorf("full %t, error %v, want a full page", full, err)
	}
	if full, err := page.add(versionRow("c", 3, "c3"), maxBytes); full || err != nil {
		t.Errorf("full %t, error %v: all versions of a record are on one page", full, err)
	}
	var got []string
	for _, d := range page.records() {
		for i := range d.Versions {
			v := &d.Versions[i]
			if v.Key != d.Key {
				t.Errorf("the key of a version is %v, want %v", v.Key, d.Key)
			}
			v.Body.JSON = append(v.Body.JSON[:len(v.Body.JSON):cap(v.Body.JSON)], "?"...) // must not reach another body
			got = append(got, fmt.Sprintf("%s %d %.2s", d.Key.ID, v.Version, v.Body.JSON))
		}
	}
	want := []string{"a 1 a1", "a 2 a2", "a 3 a3", "b 1 xx", "c 1 c1", "c 2 c2", "c 3 c3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
