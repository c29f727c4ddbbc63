package r4

import (
	"bytes"
	"time"
)

// Microseconds returns the period of a date, dateTime or instant, by its precision: from ≤ t <
// until, in microseconds since 1970 UTC. A finer value has the period of the microsecond that
// contains it. A value without a zone is treated as UTC. ok is false for other text.
func Microseconds(text []byte) (from, until int64, ok bool) {
	m, ok := parseMoment(text)
	if !ok {
		return 0, 0, false
	}
	first, _ := m.bounds()
	from = first.UnixMicro()
	switch m.precision {
	case toYear:
		return from, first.AddDate(1, 0, 0).UnixMicro(), true
	case toMonth:
		return from, first.AddDate(0, 1, 0).UnixMicro(), true
	case toDay:
		return from, first.AddDate(0, 0, 1).UnixMicro(), true
	}
	length := time.Second.Microseconds()
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		for _, c := range text[point+1:] {
			if !isDigit(c) || length == 1 {
				break
			}
			length /= 10
		}
	}
	return from, from + length, true
}
