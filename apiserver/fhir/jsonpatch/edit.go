package jsonpatch

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// editor applies operations to one document.
type editor struct {
	root *node
	// size is an upper bound of the document's length in bytes, and copied counts the bytes that
	// copy operations copied. Neither may exceed limit.
	size, copied, limit int
	// visited counts the members and elements that were visited.
	visited int
}

// maxVisited is the maximum number of members and elements that one patch visits, which takes some
// tenths of a second. A patch that visits more fails with CostError.
const maxVisited = 5_000_000

func (e *editor) sizeOf(n *node) int {
	size, parts := n.size()
	e.visited += parts
	return size
}

// childIndex returns node.childIndex, and counts the members that it searches. The elements of an
// array are not searched, so they are not counted.
func (e *editor) childIndex(n *node, name string) int {
	at := n.childIndex(name)
	if n.kind() == jsontext.KindBeginObject {
		e.visited += len(n.children)
	}
	return at
}

// apply applies one operation. problem says why it cannot be applied, and is empty if it was.
func (e *editor) apply(op operation) (problem string, err error) {
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

func (e *editor) find(path pointer) (n *node, problem string) {
	n = e.root
	for i, name := range path {
		at := e.childIndex(n, name)
		if at < 0 {
			return nil, path[:i+1].String() + " does not exist; read the resource again and correct the path"
		}
		n = n.children[at].value
	}
	return n, ""
}

// remove removes the node at a path, which must not be the whole document.
func (e *editor) remove(path pointer) (problem string) {
	n, problem := e.find(path)
	if problem != "" {
		return problem
	}
	parent, _ := e.find(path.parent())
	at := e.childIndex(parent, path.last())
	e.visited += len(parent.children) - at
	e.size -= len(parent.children[at].before) + e.sizeOf(n) + len(parent.children[at].after)
	parent.children = slices.Delete(parent.children, at, at+1)
	return ""
}

// put adds a value at a path. In an array the value is inserted before the element at the index or,
// if replace is set, replaces that element. RFC 6902 §4.1.
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
	at := e.childIndex(parent, name)
	switch kind := parent.kind(); {
	case kind == jsontext.KindBeginObject && at < 0:
		parent.expand()
		before, _ := jsontext.AppendQuote(nil, name) // a valid patch has no invalid UTF-8
		parent.children = append(parent.children, child{name: name, before: append(before, ':'), value: value})
		e.size += len(before) + 2
	case kind == jsontext.KindBeginObject, kind == jsontext.KindBeginArray && replace:
		e.size -= e.sizeOf(parent.children[at].value)
		parent.children[at].value = value
	case kind == jsontext.KindBeginArray:
		parent.expand()
		if i, ok := index(name); name == "-" || ok && i == len(parent.children) {
			at = len(parent.children)
		}
		if at < 0 {
			return path.String() + " names neither an element nor the end of the array; give the index of an element, or - for the end", nil
		}
		e.visited += len(parent.children) - at
		parent.children = slices.Insert(parent.children, at, child{value: value})
		e.size++
	default:
		return path.parent().String() + " is neither an object nor an array; read the resource again and correct the path", nil
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

func (e *editor) test(op operation) (problem string) {
	n, problem := e.find(op.path)
	if problem != "" {
		return problem
	}
	if !equal(n, &node{text: op.value}) {
		return "the value at " + op.path.String() + " differs from the value of the test; read the resource again"
	}
	return ""
}
