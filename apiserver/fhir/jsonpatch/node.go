package jsonpatch

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a value of the document. It is text until an operation goes through it.
type node struct {
	// text is the value as written; nil once it is opened.
	text []byte
	// Of an opened object or array: its brackets, its parts, and the white space
	// in it while it has none.
	brackets string
	parts    []part
	space    []byte
}

// part is a member of an object or an element of an array.
type part struct {
	name string
	// before and after are what is written around the value: the name and its
	// colon, and white space.
	before, after []byte
	value         *node
}

// kind is that of the value.
func (n *node) kind() jsontext.Kind {
	if n.text == nil {
		return jsontext.Kind(n.brackets[0])
	}
	return jsontext.Value(n.text).Kind()
}

// open takes an object or array apart, one level deep.
func (n *node) open() {
	if n.text == nil {
		return
	}
	text := n.text
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	_, _ = decoder.ReadToken() // the document is valid, so are its parts
	object := text[0] == '{'
	at := int(decoder.InputOffset())
	start := at
	for {
		if kind := decoder.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
			break
		}
		var p part
		if object {
			name, _ := decoder.ReadToken()
			p.name = name.String()
		}
		value, _ := decoder.ReadValue()
		end := int(decoder.InputOffset())
		p.before, p.value = text[at:end-len(value)], &node{text: text[end-len(value) : end]}
		at = end + separator(text[end:])
		p.after = text[end:at]
		n.parts = append(n.parts, p)
		at++ // the comma, or the end
	}
	if len(n.parts) == 0 {
		n.space = text[start : start+separator(text[start:])]
	}
	n.brackets = "[]"
	if object {
		n.brackets = "{}"
	}
	n.text = nil
}

// separator is how far it is to the comma or bracket that follows a value.
func separator(rest []byte) int { return bytes.IndexAny(rest, ",]}") }

// child finds a part of an object or array; -1 when there is none.
func (n *node) child(name string) int {
	switch n.kind() {
	case jsontext.KindBeginObject:
		n.open()
		return slices.IndexFunc(n.parts, func(p part) bool { return p.name == name })
	case jsontext.KindBeginArray:
		n.open()
		if i, ok := index(name); ok && i < len(n.parts) {
			return i
		}
	}
	return -1
}

// clone copies a node. Text is shared: it is never changed.
func (n *node) clone() *node {
	copied := *n
	copied.parts = slices.Clone(n.parts)
	for i := range copied.parts {
		copied.parts[i].value = copied.parts[i].value.clone()
	}
	return &copied
}

// size is how many bytes the node is written in, and how many parts had to be asked.
func (n *node) size() (size, parts int) {
	if n.text != nil {
		return len(n.text), 0
	}
	size, parts = len(n.brackets)+len(n.space)+max(0, len(n.parts)-1), len(n.parts)
	for _, p := range n.parts {
		ofValue, asked := p.value.size()
		size += len(p.before) + ofValue + len(p.after)
		parts += asked
	}
	return size, parts
}

// append writes the node.
func (n *node) append(dst []byte) []byte {
	if n.text != nil {
		return append(dst, n.text...)
	}
	dst = append(dst, n.brackets[0])
	if len(n.parts) == 0 {
		dst = append(dst, n.space...)
	}
	for i, p := range n.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.before...)
		dst = p.value.append(dst)
		dst = append(dst, p.after...)
	}
	return append(dst, n.brackets[1])
}
