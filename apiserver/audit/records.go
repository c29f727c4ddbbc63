package audit

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Records is a list of records in the form Type/id, separated by line feeds, which no id contains.
// One string for a whole page costs much less memory and time than a string for each record.
type Records string

// RecordsOf joins its arguments, each of which has one or more lines of the form Type/id.
func RecordsOf(records ...string) Records { return Records(strings.Join(records, "\n")) }

// All yields each record in the form Type/id.
func (r Records) All() iter.Seq[string] {
	if r == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(string(r), "\n")
}

// count returns the number of records.
func (r Records) count() int {
	if r == "" {
		return 0
	}
	return strings.Count(string(r), "\n") + 1
}

// entityOf returns a record in the form of func Entity.
func entityOf(record string) string {
	typeName, id, _ := strings.Cut(record, "/")
	lower := strings.ToLower(id)
	if lower == id {
		return record
	}
	return typeName + "/" + lower
}

// have reports whether one of the records is an entity, in the form of func Entity.
func (r Records) have(entity string) bool {
	for record := range r.All() {
		if entityOf(record) == entity {
			return true
		}
	}
	return false
}

// cut returns the first n records and the remaining records.
func (r Records) cut(n int) (first, others Records) {
	if r.count() <= n {
		return r, ""
	}
	end := 0
	for range n {
		end += strings.IndexByte(string(r[end:]), '\n') + 1
	}
	return r[:end-1], r[end:]
}

// UnmarshalJSON implements json.Unmarshaler for the lists that appendJSON and appendShortJSON append.
func (r *Records) UnmarshalJSON(text []byte) error {
	var records []string
	if err := json.Unmarshal(text, &records); err != nil {
		return err
	}
	typeName := ""
	for i, record := range records {
		if end := strings.IndexByte(record, '/') + 1; end > 0 {
			typeName = record[:end]
		} else {
			records[i] = typeName + record
		}
	}
	*r = RecordsOf(records...)
	return nil
}

// appendJSON appends the records as an array of strings.
func (r Records) appendJSON(b []byte) []byte { return r.appendArray(b, false) }

// appendShortJSON appends the records as an array of strings. A record that has the type of the
// record before it is written as its id alone.
func (r Records) appendShortJSON(b []byte) []byte { return r.appendArray(b, true) }

func (r Records) appendArray(b []byte, short bool) []byte {
	if r == "" {
		return append(b, `[]`...)
	}
	plain, typeName := isPlain(string(r)), ""
	b = append(b, '[')
	for record, others, more := "", string(r), true; more; {
		record, others, more = strings.Cut(others, "\n")
		if end := strings.IndexByte(record, '/') + 1; short && record[:end] == typeName {
			record = record[end:]
		} else {
			typeName = record[:end]
		}
		if plain {
			b = append(append(append(b, '"'), record...), '"')
		} else {
			b, _ = jsontext.AppendQuote(b, record) // invalid UTF-8 is replaced
		}
		b = append(b, ',')
	}
	b[len(b)-1] = ']'
	return b
}

// isPlain reports whether a text has only letters, digits and the punctuation of records, which
// JSON does not escape.
func isPlain(text string) bool {
	for i := range len(text) {
		if !plain[text[i]] {
			return false
		}
	}
	return true
}

var plain = func() (chars [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-./\n") {
		chars[c] = true
	}
	return chars
}()

// recordList collects the records of an entry.
type recordList struct {
	// texts are parts of the list, with one record or several.
	texts []string
	// n is the number of records.
	n int
	// repeats reports whether a record may be in the list twice.
	repeats bool
}

// add adds a record. It ignores a key without an id.
func (l *recordList) add(key store.Key) {
	if key.ID == "" {
		return
	}
	l.texts = append(l.texts, key.Type+"/"+key.ID)
	l.n++
}

// addPage adds the records of a page.
func (l *recordList) addPage(records []store.Record) {
	if len(records) == 0 {
		return
	}
	size := 0
	for i := range records {
		size += len(records[i].Key.Type) + len(records[i].Key.ID) + 2
	}
	var text strings.Builder
	text.Grow(size)
	for i := range records {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(records[i].Key.Type)
		text.WriteByte('/')
		text.WriteString(records[i].Key.ID)
	}
	l.texts = append(l.texts, text.String())
	l.n += len(records)
}

func (l *recordList) records() Records { return RecordsOf(l.texts...) }

// fewRecords is the number of records up to which duplicates are found by comparing each pair. More
// records need a map.
const fewRecords = 32

// distinct returns each of the records once. n is their number including repetitions.
func (r Records) distinct(n int) Records {
	kept := make([]string, 0, n)
	var seen map[string]struct{}
	if n > fewRecords {
		seen = make(map[string]struct{}, n)
	}
	for record := range r.All() {
		if seen == nil {
			if !slices.ContainsFunc(kept, func(other string) bool { return isSame(other, record) }) {
				kept = append(kept, record)
			}
			continue
		}
		entity := entityOf(record)
		if _, twice := seen[entity]; !twice {
			seen[entity] = struct{}{}
			kept = append(kept, record)
		}
	}
	if len(kept) == n {
		return r
	}
	return RecordsOf(kept...)
}

// isSame reports whether two records differ at most in the case of their ids. It compares the ends
// first, because ids that the server chose start with the time.
func isSame(a, b string) bool {
	if len(a) != len(b) || !strings.EqualFold(a[len(a)-1:], b[len(b)-1:]) {
		return false
	}
	end := strings.IndexByte(a, '/') + 1
	return a[:end] == b[:end] && strings.EqualFold(a[end:], b[end:])
}
