package jsonpatch

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// editor applies operations to one document.
type editor struct {
	root *node
	// size is how many bytes the document takes at most, copied how many bytes were
	// copied so far. Both are bounded by limit.
	size, copied, limit int
	// work is how many parts were gone through so far.
	work int
}

// maxWork bounds that: some tenths of a second.
const maxWork = 5_000_000

func (e *editor) sizeOf(n *node) int {
	size, parts := n.size()
	e.work += parts
	return size
}

// child is node.child. Members are looked through, elements are not.
func (e *editor) child(n *node, name string) int {
	at := n.child(name)
	if n.kind() == jsontext.KindBeginObject {
		e.work += len(n.parts)
	}
	return at
}

// do applies one operation. The problem, if any, is how it does not fit.
func (e *editor) do(op operation) (problem string, err error) {
	switch op.name {
	case "remove":
		return e.remove(op.path), nil
	case "test":
		return e.test(op), nil
	case "replace":
		if _, problem = e.find(op.path); problem != "" {
			return problem, nil
		}
		return e.put(op.path, &node{text: op.value}, true)
	case "move":
		moved, problem := e.find(op.from)
		if problem != "" || slices.Equal(op.from, op.path) {
			return problem, nil
		}
		if problem = e.remove(op.from); problem != "" {
			return problem, nil
		}
		return e.put(op.path, moved, false)
	case "copy":
		found, problem := e.find(op.from)
		if problem != "" {
			return problem, nil
		}
		if e.copied += e.sizeOf(found); e.copied > e.limit {
			return "", &SizeError{Max: e.limit}
		}
		return e.put(op.path, found.clone(), false)
	default:
		return e.put(op.path, &node{text: op.value}, false)
	}
}

// find returns the node at a path.
func (e *editor) find(path pointer) (n *node, problem string) {
	n = e.root
	for i, name := range path {
		at := e.child(n, name)
		if at < 0 {
			return nil, "there is nothing at " + path[:i+1].String()
		}
		n = n.parts[at].value
	}
	return n, ""
}

// remove takes the node at a path, which is not that of the document, out.
func (e *editor) remove(path pointer) (problem string) {
	n, problem := e.find(path)
	if problem != "" {
		return problem
	}
	parent, _ := e.find(path.parent())
	at := e.child(parent, path.last())
	e.work += len(parent.parts) - at
	e.size -= e.sizeOf(n)
	parent.parts = slices.Delete(parent.parts, at, at+1)
	return ""
}

// put adds a value at a path. In an array it goes before the element that is
// there, unless it replaces that. RFC 6902 §4.1.
func (e *editor) put(path pointer, value *node, replace bool) (problem string, err error) {
	if len(path) == 0 {
		e.size = e.sizeOf(value)
		e.root = value
		return "", e.checkSize()
	}
	parent, problem := e.find(path.parent())
	if problem != "" {
		return problem, nil
	}
	name := path.last()
	at := e.child(parent, name)
	switch kind := parent.kind(); {
	case kind == jsontext.KindBeginObject && at < 0:
		parent.open()
		before, _ := jsontext.AppendQuote(nil, name) // what is not UTF-8 cannot be in a patch
		parent.parts = append(parent.parts, part{name: name, before: append(before, ':'), value: value})
		e.size += len(before) + 2
	case kind == jsontext.KindBeginObject, kind == jsontext.KindBeginArray && replace:
		e.size -= e.sizeOf(parent.parts[at].value)
		parent.parts[at].value = value
	case kind == jsontext.KindBeginArray:
		parent.open()
		if i, ok := index(name); name == "-" || ok && i == len(parent.parts) {
			at = len(parent.parts)
		}
		if at < 0 {
			return path.String() + " is behind the end of the array", nil
		}
		e.work += len(parent.parts) - at
		parent.parts = slices.Insert(parent.parts, at, part{value: value})
		e.size++
	default:
		return path.parent().String() + " is neither an object nor an array", nil
	}
	e.size += e.sizeOf(value)
	return "", e.checkSize()
}

func (e *editor) checkSize() error {
	if e.size > e.limit {
		return &SizeError{Max: e.limit}
	}
	return nil
}

// test compares a value with the one at a path.
func (e *editor) test(op operation) (problem string) {
	n, problem := e.find(op.path)
	if problem != "" {
		return problem
	}
	if !equal(n, &node{text: op.value}) {
		return "the value at " + op.path.String() + " is not the one tested for"
	}
	return ""
}
