package r4

import "time"

// moment is a parsed date or time with its precision.
type moment struct {
	year, month, day     int
	hour, minute, second int
	nanosecond           int
	precision            precision
	// zoned is set if the time has an offset from UTC. offset is in minutes.
	zoned  bool
	offset int
}

type precision int

const (
	toYear precision = iota + 1
	toMonth
	toDay
	toSecond
)

func isDate(text []byte) bool {
	m, ok := parseMoment(text)
	return ok && m.precision <= toDay
}

func isDateTime(text []byte) bool {
	_, ok := parseMoment(text)
	return ok
}

func isInstant(text []byte) bool {
	m, ok := parseMoment(text)
	return ok && m.precision == toSecond
}

func isTime(text []byte) bool {
	var m moment
	rest, ok := m.clock(text)
	return ok && len(rest) == 0
}

// parseMoment parses a FHIR dateTime: a year, a month, a day, or a second with a zone.
func parseMoment(text []byte) (m moment, ok bool) {
	if m.year, text, ok = digits(text, 4); !ok || m.year == 0 {
		return m, false
	}
	m.precision = toYear
	if len(text) == 0 {
		return m, true
	}
	if m.month, text, ok = numberAfter('-', text); !ok || m.month < 1 || 12 < m.month {
		return m, false
	}
	m.precision = toMonth
	if len(text) == 0 {
		return m, true
	}
	if m.day, text, ok = numberAfter('-', text); !ok || m.day < 1 || daysOf(m.year, m.month) < m.day {
		return m, false
	}
	m.precision = toDay
	if len(text) == 0 {
		return m, true
	}
	if text[0] != 'T' {
		return m, false
	}
	m.precision = toSecond
	if text, ok = m.clock(text[1:]); !ok {
		return m, false
	}
	return m, m.zone(text)
}

// clock parses hh:mm:ss[.fff] and returns the remaining text.
func (m *moment) clock(text []byte) (rest []byte, ok bool) {
	if m.hour, text, ok = digits(text, 2); !ok || m.hour > 23 {
		return nil, false
	}
	if m.minute, text, ok = numberAfter(':', text); !ok || m.minute > 59 {
		return nil, false
	}
	if m.second, text, ok = numberAfter(':', text); !ok || m.second > 60 { // 60 is a leap second
		return nil, false
	}
	if len(text) == 0 || text[0] != '.' {
		return text, true
	}
	n := 1
	for scale := 100_000_000; n < len(text) && isDigit(text[n]); n++ {
		m.nanosecond += int(text[n]-'0') * scale
		scale /= 10
	}
	return text[n:], n > 1
}

// zone parses Z or an offset of at most 14 hours.
func (m *moment) zone(text []byte) bool {
	m.zoned = true
	if len(text) == 1 {
		return text[0] == 'Z'
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' {
		return false
	}
	hours, rest, ok := digits(text[1:], 2)
	if !ok {
		return false
	}
	minutes, _, ok := numberAfter(':', rest)
	m.offset = hours*60 + minutes
	if text[0] == '-' {
		m.offset = -m.offset
	}
	return ok && minutes <= 59 && hours*60+minutes <= 14*60
}

func digits(text []byte, count int) (n int, rest []byte, ok bool) {
	if len(text) < count {
		return 0, nil, false
	}
	for _, c := range text[:count] {
		if !isDigit(c) {
			return 0, nil, false
		}
		n = n*10 + int(c-'0')
	}
	return n, text[count:], true
}

// numberAfter parses a delimiter and two digits.
func numberAfter(delimiter byte, text []byte) (n int, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != delimiter {
		return 0, nil, false
	}
	return digits(text[1:], 2)
}

func daysOf(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	default:
		return 31
	}
}

// bounds returns the first and the last instant of the moment, which are equal if it has a time. A
// moment without a zone is treated as UTC.
func (m moment) bounds() (first, last time.Time) {
	first = time.Date(m.year, time.Month(max(m.month, 1)), max(m.day, 1), m.hour, m.minute, m.second, m.nanosecond, time.UTC)
	switch m.precision {
	case toYear:
		last = first.AddDate(1, 0, 0)
	case toMonth:
		last = first.AddDate(0, 1, 0)
	case toDay:
		last = first.AddDate(0, 0, 1)
	default:
		first = first.Add(-time.Duration(m.offset) * time.Minute)
		return first, first
	}
	return first, last.Add(-1)
}

// maxOffset is the maximum offset of a zone from UTC.
const maxOffset = 14 * time.Hour

// surelyAfter reports whether the moment is after another. If only one of the two has a zone, the
// result is true only if it would be so for any zone of the other moment. It is false if the
// precisions do not suffice to decide.
func (m moment) surelyAfter(other moment) bool {
	first, _ := m.bounds()
	_, last := other.bounds()
	if m.zoned != other.zoned {
		last = last.Add(maxOffset)
	}
	return first.After(last)
}
