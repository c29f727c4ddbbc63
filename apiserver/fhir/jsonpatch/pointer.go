package jsonpatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pointer is a JSON Pointer as its unescaped reference tokens. RFC 6901.
type pointer []string

func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%.100q does not start with a slash; write a JSON Pointer, such as /name", text)
	}
	parts := pointer(strings.Split(text[1:], "/"))
	for i, part := range parts {
		for at := strings.IndexByte(part, '~'); at >= 0; {
			if at+1 == len(part) || part[at+1] != '0' && part[at+1] != '1' {
				return nil, fmt.Errorf("%.100q has a ~ that is followed by neither 0 nor 1; write ~0 for a ~ in a name", text)
			}
			next := strings.IndexByte(part[at+1:], '~')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

func (p pointer) String() string {
	var text strings.Builder
	for _, part := range p {
		text.WriteByte('/')
		text.WriteString(strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
	}
	if text.Len() == 0 {
		return "the whole document"
	}
	return fmt.Sprintf("%.200s", text.String())
}

// parent returns the pointer to the parent of the target.
func (p pointer) parent() pointer { return p[:len(p)-1] }

// last returns the name or index of the target in its parent.
func (p pointer) last() string { return p[len(p)-1] }

// isBelow reports whether the target is inside that of other.
func (p pointer) isBelow(other pointer) bool {
	return len(p) > len(other) && slices.Equal(p[:len(other)], other)
}

// index parses an array index: digits without a leading zero. RFC 6901 §4.
func index(part string) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == part
}
