package r4

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// offset is where in the body the last token ended.
func (r *reader) offset() int { return int(r.decoder.InputOffset()) }

// open reads the start of an object or array.
func (r *reader) open() bool {
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.fail(err)
	}
	return r.enter()
}

// enter bounds the depth of what was just opened.
func (r *reader) enter() bool {
	depth := r.decoder.StackDepth()
	if depth > maxDepth {
		r.reportAt(IssueStructure, CodeTooDeep, r.expression(r.decoder.StackPointer()),
			fmt.Sprintf("the body nests deeper than %d levels", maxDepth))
		return false
	}
	if r.names != nil {
		r.names.open(depth)
	}
	return true
}

// skip reads a value of any kind.
func (r *reader) skip() bool {
	depth := r.decoder.StackDepth()
	for {
		token, err := r.decoder.ReadToken()
		if err != nil {
			return r.fail(err)
		}
		switch token.Kind() {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			if !r.enter() {
				return false
			}
		case jsontext.KindString:
			if r.names != nil && r.isName() && !r.checkName([]byte(token.String())) {
				return false
			}
		}
		if r.decoder.StackDepth() == depth {
			return true
		}
	}
}

// isName reports whether the string read last was the name of a member.
func (r *reader) isName() bool {
	kind, length := r.decoder.StackIndex(r.decoder.StackDepth())
	return kind == jsontext.KindBeginObject && length%2 == 1
}

// checkName reports a doubled name where the decoder does not.
func (r *reader) checkName(name []byte) bool {
	if r.names == nil || r.names.add(r.decoder.StackDepth(), string(name)) {
		return true
	}
	return r.reportAt(IssueStructure, CodeDuplicateElement, r.expression(r.decoder.StackPointer()),
		"the name "+Quote(string(name))+" is given twice in one object")
}

// end makes sure that nothing follows the body.
func (r *reader) end() bool {
	_, err := r.decoder.ReadToken()
	if errors.Is(err, io.EOF) {
		return true
	}
	if err != nil {
		return r.fail(err)
	}
	return r.reportAt(IssueStructure, CodeUnparseable, "", "the body goes on after the end of the resource")
}

// fail reports why the decoder could not go on.
func (r *reader) fail(err error) bool {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		r.duplicate = true
		return false
	}
	if errors.Is(err, io.EOF) {
		return r.reportAt(IssueStructure, CodeUnparseable, "", "the body is empty; it must be a resource in JSON")
	}
	reason, at, expression := err.Error(), r.offset(), ""
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		reason, at, expression = syntax.Err.Error(), int(syntax.ByteOffset), r.expression(syntax.JSONPointer)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason, at = "it ends too early", len(r.body)
	}
	r.reportAt(IssueStructure, CodeUnparseable, expression,
		"the body is not valid JSON: "+strings.TrimPrefix(reason, "jsontext: ")+", "+position(r.body, at))
	return false
}

// report adds an issue about one of the resource's own elements, or about the
// resource when element is empty.
func (r *reader) report(kind IssueType, code, element, diagnostics string) bool {
	expression := r.opts.Type
	if element != "" {
		expression += "." + element
	}
	return r.reportAt(kind, code, expression, diagnostics)
}

// reportAt adds an issue. It returns false when there is no room for more.
func (r *reader) reportAt(kind IssueType, code, expression, diagnostics string) bool {
	if len(r.issues) == maxIssues {
		r.issues[maxIssues-1] = Issue{
			Severity: SeverityError, Type: IssueStructure, Code: CodeTooManyIssues,
			Diagnostics: fmt.Sprintf("there are more than %d issues; the others are not listed", maxIssues-1),
		}
		return false
	}
	r.issues = append(r.issues, Issue{
		Severity: SeverityError, Type: kind, Code: code, Diagnostics: diagnostics, Expression: expression,
	})
	return true
}

// expression turns a pointer to where the decoder is into FHIRPath.
func (r *reader) expression(pointer jsontext.Pointer) string {
	path := []byte(r.opts.Type)
	level := 0
	for token := range pointer.Tokens() {
		level++
		if level <= r.decoder.StackDepth() {
			if kind, _ := r.decoder.StackIndex(level); kind == jsontext.KindBeginArray {
				path = append(append(append(path, '['), token...), ']')
				continue
			}
		}
		path = appendElement(path, truncate(token))
	}
	return string(path)
}

// position describes an offset to a person.
func position(body []byte, offset int) string {
	before := body[:min(max(offset, 0), len(body))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("at byte %d (line %d, column %d)", offset, line, column)
}

// unquote returns what a valid JSON string says, without copying where it can.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	value, _ := jsontext.AppendUnquote(nil, raw) // the decoder has checked it
	return value
}

// Quote shows a person what a client sent, within bounds.
func Quote(s string) string { return strconv.Quote(truncate(s)) }

// truncate bounds what is repeated of a body.
func truncate(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginArray:
		return "array"
	default:
		return "object"
	}
}

func withArticle(kind jsontext.Kind) string {
	switch name := kindName(kind); name {
	case "null":
		return name
	case "array", "object":
		return "an " + name
	default:
		return "a " + name
	}
}

// nameSets hold the names met in each object that is being read.
type nameSets struct {
	levels [maxDepth + 1]map[string]struct{}
}

func newNameSets() *nameSets { return &nameSets{} }

func (n *nameSets) open(depth int) { n.levels[depth] = map[string]struct{}{} }

// add reports whether name is new in the object at depth.
func (n *nameSets) add(depth int, name string) bool {
	_, known := n.levels[depth][name]
	n.levels[depth][name] = struct{}{}
	return !known
}
