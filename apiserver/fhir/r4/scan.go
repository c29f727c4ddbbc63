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
	if r.decoder.StackDepth() > maxDepth {
		r.report(IssueStructure, CodeTooDeep, fmt.Sprintf("the body nests deeper than %d levels", maxDepth))
		return false
	}
	return true
}

// skip reads a value of any kind.
func (r *reader) skip() bool {
	err := r.decoder.SkipValue()
	return err == nil || r.fail(err)
}

// skipMembers reads the other members of an object.
func (r *reader) skipMembers() bool {
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		if !r.skip() {
			return false
		}
	}
	return true
}

// closeObject reads the end of an object.
func (r *reader) closeObject() bool {
	_, err := r.decoder.ReadToken()
	return err == nil || r.fail(err)
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
	if errors.Is(err, io.EOF) {
		return r.reportAt(IssueStructure, CodeUnparseable, "", "the body is empty; it must be a resource in JSON")
	}
	reason, at := err.Error(), r.offset()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		reason, at = syntax.Err.Error(), int(syntax.ByteOffset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason, at = "it ends too early", len(r.body)
	}
	r.report(IssueStructure, CodeUnparseable,
		"the body is not valid JSON: "+strings.TrimPrefix(reason, "jsontext: ")+", "+position(r.body, at))
	return false
}

// position describes an offset to a person.
func position(body []byte, offset int) string {
	before := body[:min(max(offset, 0), len(body))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("at byte %d (line %d, column %d)", offset, line, column)
}

// unquote returns what a valid JSON string says, without copying where it can. It
// is valid until the next call.
func (r *reader) unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	r.unescaped, _ = jsontext.AppendUnquote(r.unescaped[:0], raw) // the decoder has checked it
	return r.unescaped
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
