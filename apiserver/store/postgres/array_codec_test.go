package postgres

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

// TestArrayCodec compares arrays with those that pgx encodes.
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
			want, got := decoded(t, pgx, test.oid, test.value), decoded(t, own, test.oid, test.value)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// decoded encodes a value with the codecs of types, and decodes it with those of pgx. The two encode an empty
// array in different ways, and note in different ways whether an element is NULL.
func decoded(t *testing.T, types *pgtype.Map, oid uint32, value any) any {
	t.Helper()
	encoded, err := types.Encode(oid, pgtype.BinaryFormatCode, value, nil)
	if err != nil {
		t.Fatal(err)
	}
	into := reflect.New(reflect.TypeOf(value))
	if err := pgtype.NewMap().Scan(oid, pgtype.BinaryFormatCode, encoded, into.Interface()); err != nil {
		t.Fatal(err)
	}
	return into.Elem().Interface()
}
