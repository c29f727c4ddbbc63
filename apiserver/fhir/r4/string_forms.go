package r4

import (
	"bytes"
	"unicode/utf8"
)

// maxString is the maximum length of a string in characters. R4 datatypes.html#string.
const maxString = 1 << 20

func isString(text []byte) bool {
	if len(text) == 0 || len(text) > maxString && utf8.RuneCount(text) > maxString {
		return false
	}
	for _, c := range text {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// isSpace reports whether c matches \s of a regular expression.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// isCode reports whether text is one or more words, separated by single spaces, without control
// characters. R4 datatypes.html#code.
func isCode(text []byte) bool {
	if len(text) == 0 || text[len(text)-1] == ' ' {
		return false
	}
	spaced := true // a leading space is invalid, as is a space after a space
	for _, c := range text {
		if c <= ' ' && (c != ' ' || spaced) {
			return false
		}
		spaced = c == ' '
	}
	return true
}

func isID(text []byte) bool {
	if len(text) == 0 || len(text) > 64 {
		return false
	}
	for _, c := range text {
		if !isLetter(c) && !isDigit(c) && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func isURI(text []byte) bool {
	for _, c := range text {
		if c <= ' ' {
			return false
		}
	}
	return len(text) > 0
}

var (
	oidPrefix  = []byte("urn:oid:")
	uuidPrefix = []byte("urn:uuid:")
)

// isOID reports whether text matches urn:oid:[0-2](\.(0|[1-9][0-9]*))+.
func isOID(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, oidPrefix)
	if !ok || len(rest) < 3 || rest[0] < '0' || '2' < rest[0] {
		return false
	}
	for rest = rest[1:]; len(rest) > 0; {
		if rest[0] != '.' {
			return false
		}
		digits := 1
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		if digits == 1 || digits > 2 && rest[1] == '0' {
			return false
		}
		rest = rest[digits:]
	}
	return true
}

// isUUID reports whether text is urn:uuid: with a UUID in lower case.
func isUUID(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, uuidPrefix)
	if !ok || len(rest) != 36 {
		return false
	}
	for i, c := range rest {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isDigit(c) && (c < 'a' || 'f' < c) {
				return false
			}
		}
	}
	return true
}

// isBase64 reports whether text is base64 in groups of four characters, with white space anywhere.
func isBase64(text []byte) bool {
	count, padding := 0, 0
	for _, c := range text {
		switch {
		case isLetter(c), isDigit(c), c == '+', c == '/':
			if padding > 0 {
				return false
			}
			count++
		case c == '=':
			count++
			padding++
		case isSpace(c):
		default:
			return false
		}
	}
	return count > 0 && count%4 == 0 && padding <= 2
}

// isToken reports whether text is a token of RFC 7230. Empty text is not.
func isToken(text []byte) bool {
	for _, c := range text {
		if !isLetter(c) && !isDigit(c) && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) < 0 {
			return false
		}
	}
	return len(text) > 0
}

// isMimeType reports whether text is type/subtype, optionally with parameters (BCP 13). It does not
// validate the parameters.
func isMimeType(text []byte) bool {
	if semicolon := bytes.IndexByte(text, ';'); semicolon >= 0 {
		text = bytes.TrimRight(text[:semicolon], " ")
	}
	main, sub, ok := bytes.Cut(text, []byte{'/'})
	return ok && isToken(main) && isToken(sub)
}

// isLanguageTag reports whether text has the form of a language tag (BCP 47): subtags of 1 to 8
// letters and digits. The first subtag has letters only. It has at least two of them, or it is x or
// i and another subtag follows.
func isLanguageTag(text []byte) bool {
	for i := 0; ; i++ {
		subtag, rest, more := bytes.Cut(text, []byte{'-'})
		if len(subtag) == 0 || len(subtag) > 8 {
			return false
		}
		for _, c := range subtag {
			if !isLetter(c) && (i == 0 || !isDigit(c)) {
				return false
			}
		}
		if i == 0 && len(subtag) == 1 && (!more || subtag[0]|0x20 != 'x' && subtag[0]|0x20 != 'i') {
			return false
		}
		if !more {
			return true
		}
		text = rest
	}
}
