package jsonpatch

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a value of the document. It is kept as text until an operation has a path into it or
// compares it.
type node struct {
	// text is the value as written, or nil once it is expanded.
	text []byte
	// brackets, children and space describe an expanded object or array. space is the white space
	// in an empty one.
	brackets string
	children []child
	space    []byte
}

// child is a member of an object or an element of an array.
type child struct {
	name string
	// before and after are what is written around the value: the name, its colon and white space.
	before, after []byte
	value         *node
}

func (n *node) kind() jsontext.Kind {
	if n.text == nil {
		return jsontext.Kind(n.brackets[0])
	}
	return jsontext.Value(n.text).Kind()
}

// expand splits an object or array into its children, one level deep.
func (n *node) expand() {
	if n.text == nil {
		return
	}
	text := n.text
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	_, _ = decoder.ReadToken() // the document is valid, so reading cannot fail
	object := text[0] == '{'
	at := int(decoder.InputOffset())
	start := at
	for {
		if kind := decoder.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
			break
		}
		var p child
		if object {
			name, _ := decoder.ReadToken()
			p.name = name.String()
		}
		value, _ := decoder.ReadValue()
		end := int(decoder.InputOffset())
		p.before, p.value = text[at:end-len(value)], &node{text: text[end-len(value) : end]}
		at = end + separatorOffset(text[end:])
		p.after = text[end:at]
		n.children = append(n.children, p)
		at++ // the comma, or the end
	}
	if len(n.children) == 0 {
		n.space = text[start : start+separatorOffset(text[start:])]
	}
	n.brackets = "[]"
	if object {
		n.brackets = "{}"
	}
	n.text = nil
}

// separatorOffset returns the offset of the comma or bracket after a value.
func separatorOffset(rest []byte) int { return bytes.IndexAny(rest, ",]}") }

// childIndex returns the index of a child, or -1.
func (n *node) childIndex(name string) int {
	switch n.kind() {
	case jsontext.KindBeginObject:
		n.expand()
		return slices.IndexFunc(n.children, func(p child) bool { return p.name == name })
	case jsontext.KindBeginArray:
		n.expand()
		if i, ok := index(name); ok && i < len(n.children) {
			return i
		}
	}
	return -1
}

// clone copies a node. The text is shared, because it is never changed.
func (n *node) clone() *node {
	copied := *n
	copied.children = slices.Clone(n.children)
	for i := range copied.children {
		copied.children[i].value = copied.children[i].value.clone()
	}
	return &copied
}

// size returns the length of the node in bytes, and how many children were visited to compute it.
func (n *node) size() (size, parts int) {
	if n.text != nil {
		return len(n.text), 0
	}
	size, parts = len(n.brackets)+len(n.space)+max(0, len(n.children)-1), len(n.children)
	for _, p := range n.children {
		ofValue, visited := p.value.size()
		size += len(p.before) + ofValue + len(p.after)
		parts += visited
	}
	return size, parts
}

func (n *node) append(dst []byte) []byte {
	if n.text != nil {
		return append(dst, n.text...)
	}
	dst = append(dst, n.brackets[0])
	if len(n.children) == 0 {
		dst = append(dst, n.space...)
	}
	for i, p := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.before...)
		dst = p.value.append(dst)
		dst = append(dst, p.after...)
	}
	return append(dst, n.brackets[1])
}
