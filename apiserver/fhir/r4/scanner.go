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

// offset returns the offset in the body after the last token.
func (r *reader) offset() int { return int(r.decoder.InputOffset()) }

// open reads the start of an object or array.
func (r *reader) open() bool {
	if _, err := r.decoder.ReadToken(); err != nil {
		return r.fail(err)
	}
	if r.decoder.StackDepth() > maxDepth {
		r.report(IssueStructure, CodeTooDeep, fmt.Sprintf("objects and arrays in the body are nested deeper than %d levels; send fewer levels", maxDepth))
		return false
	}
	return true
}

// skip reads a value of any kind.
func (r *reader) skip() bool {
	err := r.decoder.SkipValue()
	return err == nil || r.fail(err)
}

// skipMembers skips the remaining members of an object.
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

// end checks that the body ends after the resource.
func (r *reader) end() bool {
	_, err := r.decoder.ReadToken()
	if errors.Is(err, io.EOF) {
		return true
	}
	if err != nil {
		return r.fail(err)
	}
	return r.reportAt(IssueStructure, CodeUnparseable, "", "the body has more text after the resource; send one resource only")
}

// fail reports an error of the decoder. It returns false, so that the pass ends, except for an empty
// body, of which there is nothing more to read.
func (r *reader) fail(err error) bool {
	if errors.Is(err, io.EOF) {
		return r.reportAt(IssueStructure, CodeUnparseable, "", "the body is empty; send a resource in JSON")
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

// position describes an offset in messages.
func position(body []byte, offset int) string {
	before := body[:min(max(offset, 0), len(body))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("at byte %d (line %d, column %d)", offset, line, column)
}

// unquote returns the text of a valid JSON string. It copies only a string with escapes. The text
// is valid until the next call.
func (r *reader) unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	r.unescaped, _ = jsontext.AppendUnquote(r.unescaped[:0], raw) // the decoder has checked it
	return r.unescaped
}

// Quote quotes text from a client for a message. It truncates text that is longer than 100 bytes.
func Quote(s string) string { return strconv.Quote(truncate(s)) }

// truncate returns s or, if it is longer than 100 bytes, its start and an ellipsis.
func truncate(s string) string {
	const maxBytes = 100
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "…"
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
