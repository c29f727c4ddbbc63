package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

// TestArrayCodec compares the encoding of arrays with that of pgx.
func TestArrayCodec(t *testing.T) {
	own, pgx := pgtype.NewMap(), pgtype.NewMap()
	registerArrayTypes(own)
	for name, test := range map[string]struct {
		oid   uint32
		value any
	}{
		"int8":               {pgtype.Int8ArrayOID, []int64{1, -2, 1 << 62}},
		"int8, empty":        {pgtype.Int8ArrayOID, []int64{}},
		"int8, NULL":         {pgtype.Int8ArrayOID, []int64(nil)},
		"int4":               {pgtype.Int4ArrayOID, []int32{1, -2, 1 << 30}},
		"int4, empty":        {pgtype.Int4ArrayOID, []int32{}},
		"int4 from int64":    {pgtype.Int4ArrayOID, []int64{1, -2, 1 << 30}},
		"int8 from int32":    {pgtype.Int8ArrayOID, []int32{1, -2, 1 << 30}},
		"bytea":              {pgtype.ByteaArrayOID, [][]byte{{1, 2}, {}, nil, {3}}},
		"bytea, empty":       {pgtype.ByteaArrayOID, [][]byte{}},
		"bytea, all NULL":    {pgtype.ByteaArrayOID, [][]byte{nil}},
		"text":               {pgtype.TextArrayOID, []string{"a", "", "漢字\n"}},
		"text, empty":        {pgtype.TextArrayOID, []string{}},
		"text with NULL":     {pgtype.TextArrayOID, []*string{nil, new(string)}},
		"int2, by pgx alone": {pgtype.Int2ArrayOID, []int16{1, -2}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := pgx.Encode(test.oid, pgtype.BinaryFormatCode, test.value, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := own.Encode(test.oid, pgtype.BinaryFormatCode, test.value, nil)
			if err != nil {
				t.Fatal(err)
			}
			// pgx notes whether an element is NULL; Postgres ignores the note.
			if diff := cmp.Diff(withoutNote(want), withoutNote(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// withoutNote returns an encoded array with 0 as its second number.
func withoutNote(array []byte) []byte {
	if len(array) >= 8 {
		clear(array[4:8])
	}
	return array
}
