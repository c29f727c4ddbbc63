package list

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Envelope returns the response of a list: the items of a page and the total count.
func (r Request[C]) Envelope(items []jsontext.Value, total int64) []byte {
	text := []byte(`{"data":[`)
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, item...)
	}
	text = append(text, `],"meta":{"page":`...)
	text = strconv.AppendInt(text, int64(r.Page), 10)
	text = append(text, `,"pageSize":`...)
	text = strconv.AppendInt(text, int64(r.PageSize), 10)
	text = append(text, `,"total":`...)
	text = strconv.AppendInt(text, total, 10)
	text = append(text, `,"totalPages":`...)
	size := int64(r.PageSize)
	text = strconv.AppendInt(text, (total+size-1)/size, 10)
	return append(text, `}}`...)
}
