package r4

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value that tests take apart, change and write again. It knows
// nothing of FHIR.
type node struct {
	// kind is { or [ or anything else for a scalar, which is raw.
	kind    byte
	raw     string
	members []branch
	items   []*node
}

// branch is a member of an object. Its name is raw JSON.
type branch struct {
	name  string
	value *node
}

func scalar(raw string) *node   { return &node{kind: 's', raw: raw} }
func list(items ...*node) *node { return &node{kind: '[', items: items} }
func dict() *node               { return &node{kind: '{'} }
func quoted(text string) *node  { return scalar(quote(text)) }
func (n *node) isScalar() bool  { return n.kind == 's' }
func (n *node) put(name string, v *node) *node {
	if i := n.find(name); i >= 0 {
		n.members[i].value = v
	} else {
		n.members = append(n.members, branch{quote(name), v})
	}
	return n
}

func (n *node) drop(name string) {
	if i := n.find(name); i >= 0 {
		n.members = append(n.members[:i:i], n.members[i+1:]...)
	}
}

func (n *node) find(name string) int {
	for i, m := range n.members {
		if m.name[1:len(m.name)-1] == name {
			return i
		}
	}
	return -1
}

func (n *node) get(name string) *node {
	if i := n.find(name); i >= 0 {
		return n.members[i].value
	}
	return nil
}

func quote(text string) string {
	raw, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (n *node) text() string {
	text, err := jsontext.AppendUnquote(nil, n.raw)
	if err != nil {
		return ""
	}
	return string(text)
}

func (n *node) appendTo(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, m.name...), ':')
			dst = m.value.appendTo(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendTo(dst)
		}
		return append(dst, ']')
	default:
		return append(dst, n.raw...)
	}
}

func (n *node) String() string { return string(n.appendTo(nil)) }

func parseTree(t testing.TB, text []byte) *node {
	t.Helper()
	root, err := readTree(jsontext.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func readTree(d *jsontext.Decoder) (*node, error) {
	switch d.PeekKind() {
	case '{':
		n := &node{kind: '{'}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		for d.PeekKind() != '}' {
			name, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			m := branch{name: string(name)}
			if m.value, err = readTree(d); err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		_, err := d.ReadToken()
		return n, err
	case '[':
		n := &node{kind: '['}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		for d.PeekKind() != ']' {
			item, err := readTree(d)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err := d.ReadToken()
		return n, err
	default:
		raw, err := d.ReadValue()
		return scalar(string(raw)), err
	}
}
