package schema

import "github.com/go-json-experiment/json/jsontext"

// Writer writes a JSON object member by member. It writes values byte for byte.
type Writer struct {
	text  []byte
	begun bool
}

// NewWriter starts an object at the end of text, to which it appends.
func NewWriter(text []byte) *Writer { return &Writer{text: append(text, '{')} }

// Raw adds a member with a JSON value.
func (w *Writer) Raw(name string, value jsontext.Value) {
	w.quote(name)
	w.text = append(w.text, value...)
}

// String adds a member with a string value.
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

// Done ends the object and returns the text with it.
func (w *Writer) Done() []byte { return append(w.text, '}') }
