package document

import "github.com/go-json-experiment/json/jsontext"

// Writer writes a JSON object member by member, with values as they are.
type Writer struct {
	text  []byte
	begun bool
}

// NewWriter begins an object behind a text.
func NewWriter(text []byte) *Writer { return &Writer{text: append(text, '{')} }

// Raw adds a member whose value is JSON.
func (w *Writer) Raw(name string, value jsontext.Value) {
	w.quote(name)
	w.text = append(w.text, value...)
}

// String adds a member whose value is a string.
func (w *Writer) String(name, value string) {
	w.quote(name)
	w.text, _ = jsontext.AppendQuote(w.text, value) // bad UTF-8 is written as U+FFFD
}

func (w *Writer) quote(name string) {
	if w.begun {
		w.text = append(w.text, ',')
	}
	w.begun = true
	w.text, _ = jsontext.AppendQuote(w.text, name) // bad UTF-8 is written as U+FFFD
	w.text = append(w.text, ':')
}

// Done ends the object and returns the text.
func (w *Writer) Done() []byte { return append(w.text, '}') }
