package r4

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The XHTML of a narrative must be well-formed XML with only the elements and attributes that R4
// allows (narrative.html#xhtml, invariant txt-1), and must have content (txt-2). Scripts, forms,
// frames and event handlers are not allowed.
const (
	invariantXHTML   = "txt-1"
	invariantContent = "txt-2"
	xhtmlNamespace   = "http://www.w3.org/1999/xhtml"
)

// narrativeElements are the allowed elements: those of HTML 4.0 chapters 7 to 11 (except 9.4) and
// 15, without deprecated elements, and those of links, images and image maps.
var narrativeElements = wordSet(`
	p br div h1 h2 h3 h4 h5 h6 a span b em i strong small big tt dfn q var abbr acronym
	cite blockquote hr address bdo kbd sub sup ul ol li dl dt dd pre
	table caption colgroup col thead tr tfoot tbody th td code samp img map area`)

// narrativeAttributes are the allowed attributes. A name with a point, such as a.href, means that
// only the element before the point may have the attribute.
var narrativeAttributes = wordSet(`
	title style class id lang xml:lang dir accesskey tabindex
	span width align valign char charoff abbr axis headers scope rowspan colspan
	div.xmlns a.href a.name a.charset a.type a.hreflang a.rel a.rev a.shape a.coords
	blockquote.cite q.cite
	img.src img.alt img.border img.longdesc img.height img.width img.usemap img.ismap
	map.name area.shape area.coords area.href area.nohref area.alt
	table.summary table.border table.frame table.rules table.cellspacing table.cellpadding
	td.nowrap th.nowrap pre.space`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// narrative is the parser of a narrative's XHTML.
type narrative struct {
	rest       []byte
	open       [][]byte // names of the elements that are open
	hasContent bool     // there is text or an image
}

// checkNarrative returns the invariant that text violates and the message, or "" if it is valid.
func checkNarrative(text []byte) (invariant, problem string) {
	n := narrative{rest: bytes.Trim(text, " \t\r\n"), open: make([][]byte, 0, 16)}
	if !isXMLText(text) {
		return invariantXHTML, "the narrative has a control character or another character that XML 1.0 does not allow; remove it"
	}
	if !bytes.HasPrefix(n.rest, []byte("<div")) {
		return invariantXHTML, "the narrative must be one div element; send <div xmlns=\"" + xhtmlNamespace + "\">…</div>"
	}
	for len(n.rest) > 0 {
		if problem := n.next(); problem != "" {
			return invariantXHTML, "the narrative is not the XHTML that R4 allows: " + problem
		}
		if len(n.open) == 0 && len(n.rest) > 0 {
			return invariantXHTML, "the narrative has text after its div element; move it into the div"
		}
	}
	if len(n.open) > 0 {
		return invariantXHTML, "the narrative is not the XHTML that R4 allows: the element " + Quote(string(n.open[len(n.open)-1])) + " has no end tag; add it"
	}
	if !n.hasContent {
		return invariantContent, "the narrative must have text or an image"
	}
	return "", ""
}

// next reads the next part of the narrative: a tag, a comment, a CDATA section, or the text before
// the next of these. problem is empty if the part is valid.
func (n *narrative) next() (problem string) {
	switch {
	case n.rest[0] != '<':
		return n.text()
	case bytes.HasPrefix(n.rest, []byte("</")):
		return n.endTag()
	case bytes.HasPrefix(n.rest, []byte("<!--")):
		return n.comment()
	case bytes.HasPrefix(n.rest, []byte("<![CDATA[")):
		return n.cdata()
	case len(n.rest) > 1 && (n.rest[1] == '!' || n.rest[1] == '?'):
		return "it has a declaration or processing instruction, which is not allowed; remove it"
	default:
		return n.startTag()
	}
}

// cdata reads a CDATA section.
func (n *narrative) cdata() (problem string) {
	text := n.rest[len("<![CDATA["):]
	if problem := n.skipPast("<![CDATA[", "]]>"); problem != "" {
		return problem
	}
	text = text[:len(text)-len(n.rest)-len("]]>")]
	n.hasContent = n.hasContent || len(bytes.TrimSpace(text)) > 0
	return ""
}

// comment reads a comment, which must not contain two hyphens in a row.
func (n *narrative) comment() (problem string) {
	if problem := n.skipPast("<!--", "--"); problem != "" {
		return problem
	}
	rest, ok := bytes.CutPrefix(n.rest, []byte(">"))
	if !ok {
		return "a comment contains two hyphens in a row; remove one"
	}
	n.rest = rest
	return ""
}

func (n *narrative) skipPast(start, end string) (problem string) {
	_, after, ok := bytes.Cut(n.rest[len(start):], []byte(end))
	if !ok {
		return strconv.Quote(start) + " has no end; add " + strings.TrimSuffix(end, ">") + ">"
	}
	n.rest = after
	return ""
}

func (n *narrative) text() (problem string) {
	text := n.rest
	if tag := bytes.IndexByte(n.rest, '<'); tag >= 0 {
		text = n.rest[:tag]
	}
	n.rest = n.rest[len(text):]
	if bytes.Contains(text, []byte("]]>")) {
		return "it has a ]]> outside a CDATA section; write ]]&gt;"
	}
	if problem := checkEntities(text); problem != "" {
		return "it " + problem
	}
	n.hasContent = n.hasContent || hasText(text)
	return ""
}

// hasText reports whether text has other characters than white space.
func hasText(text []byte) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == '&' {
			r, size = entity(text)
		}
		if !unicode.IsSpace(r) {
			return true
		}
		text = text[size:]
	}
	return false
}

func (n *narrative) endTag() (problem string) {
	name := n.name(2)
	n.rest = bytes.TrimLeft(n.rest[2+len(name):], " \t\r\n")
	last := len(n.open) - 1
	if len(n.rest) == 0 || n.rest[0] != '>' || last < 0 || !bytes.Equal(n.open[last], name) {
		return "the end tag of " + Quote(string(name)) + " does not match the element that is open there; correct or remove it"
	}
	n.rest, n.open = n.rest[1:], n.open[:last]
	return ""
}

// name returns the name that starts at an offset of the remaining text.
func (n *narrative) name(from int) []byte {
	to := from
	for to < len(n.rest) && (isLetter(n.rest[to]) || isDigit(n.rest[to]) || n.rest[to] == ':' || n.rest[to] == '-' || n.rest[to] == '_' || n.rest[to] == '.') {
		to++
	}
	return n.rest[from:to]
}

// maxNesting is the maximum nesting of elements in a narrative. A narrative with deeper nesting is
// invalid.
const maxNesting = 128

func (n *narrative) startTag() (problem string) {
	name := n.name(1)
	if !narrativeElements[string(name)] {
		return "the element " + Quote(string(name)) + " is not allowed; remove it"
	}
	if len(n.open) == maxNesting {
		return "its elements are nested deeper than " + strconv.Itoa(maxNesting) + " levels; send fewer levels"
	}
	n.hasContent = n.hasContent || string(name) == "img"
	n.rest = n.rest[1+len(name):]
	var attributes [][]byte
	for {
		spaced := len(n.rest)
		n.rest = bytes.TrimLeft(n.rest, " \t\r\n")
		switch {
		case bytes.HasPrefix(n.rest, []byte("/>")):
			n.rest = n.rest[2:]
			return n.checkRoot(name, attributes)
		case bytes.HasPrefix(n.rest, []byte(">")):
			n.rest = n.rest[1:]
			problem := n.checkRoot(name, attributes)
			n.open = append(n.open, name)
			return problem
		case spaced == len(n.rest):
			return "the tag of " + Quote(string(name)) + " is not well-formed; separate its attributes by spaces and end it with > or />"
		}
		attribute, problem := n.attribute(name)
		if problem != "" {
			return problem
		}
		if slices.ContainsFunc(attributes, func(a []byte) bool { return bytes.Equal(a, attribute) }) {
			return attributeOf(attribute, name) + " is repeated; send it once"
		}
		attributes = append(attributes, attribute)
		if len(attributes) > len(narrativeAttributes) {
			return "the element " + Quote(string(name)) + " has more than " + strconv.Itoa(len(narrativeAttributes)) + " attributes; remove some"
		}
	}
}

// checkRoot checks that the root element is a div with the attribute xmlns, whose value
// checkAttribute checks. It accepts an element inside another one.
func (n *narrative) checkRoot(name []byte, attributes [][]byte) (problem string) {
	if len(n.open) > 0 {
		return ""
	}
	if string(name) != "div" {
		return "it must be one div element, not " + Quote(string(name))
	}
	if !slices.ContainsFunc(attributes, func(a []byte) bool { return string(a) == "xmlns" }) {
		return `its div must have xmlns="` + xhtmlNamespace + `"`
	}
	return ""
}

// attribute reads an attribute of an element and returns its name.
func (n *narrative) attribute(element []byte) (name []byte, problem string) {
	name = n.name(0)
	dotted := string(element) + "." + string(name)
	if !narrativeAttributes[string(name)] && !narrativeAttributes[dotted] {
		return name, attributeOf(name, element) + " is not allowed; remove it"
	}
	rest := bytes.TrimLeft(n.rest[len(name):], " \t\r\n")
	if len(rest) == 0 || rest[0] != '=' {
		return name, attributeOf(name, element) + " has no value; send one in quotes"
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return name, attributeOf(name, element) + " has a value without quotes; quote it"
	}
	end := bytes.IndexByte(rest[1:], rest[0])
	if end < 0 {
		return name, attributeOf(name, element) + " has a value without a closing quote; add it"
	}
	n.rest = rest[end+2:]
	if problem := checkAttribute(dotted, rest[1:end+1]); problem != "" {
		return name, attributeOf(name, element) + " " + problem
	}
	return name, ""
}

// attributeOf names an attribute of an element in messages.
func attributeOf(name, element []byte) string {
	return "the attribute " + Quote(string(name)) + " of " + Quote(string(element))
}

// checkAttribute returns what is wrong with the value of an attribute, or "". name is
// element.attribute. The problem follows the name of the attribute in messages.
func checkAttribute(name string, value []byte) (problem string) {
	if bytes.IndexByte(value, '<') >= 0 {
		return "has a <; write &lt;"
	}
	if problem := checkEntities(value); problem != "" {
		return problem
	}
	switch {
	case strings.HasSuffix(name, ".xmlns"):
		if string(value) != xhtmlNamespace {
			return "must be " + xhtmlNamespace
		}
	case strings.HasSuffix(name, ".style"):
		if s := rendered(value); strings.Contains(s, "javascript:") || strings.Contains(s, "expression(") || strings.Contains(s, "@import") {
			return "must not contain javascript:, expression( or @import"
		}
	case strings.HasSuffix(name, ".href"), strings.HasSuffix(name, ".src"), strings.HasSuffix(name, ".cite"), strings.HasSuffix(name, ".longdesc"):
		s := rendered(value)
		isImage := name == "img.src" && strings.HasPrefix(s, "data:image/")
		if strings.HasPrefix(s, "javascript:") || strings.HasPrefix(s, "vbscript:") || strings.HasPrefix(s, "data:") && !isImage {
			return "must not be a javascript: or vbscript: URL, nor a data: URL other than an image in the src of an img"
		}
	}
	return ""
}

// rendered returns the value of an attribute as a browser interprets it: with entities decoded,
// without spaces and control characters up to U+0020, and in lower case.
func rendered(value []byte) string {
	var s strings.Builder
	for len(value) > 0 {
		r, size := utf8.DecodeRune(value)
		if r == '&' {
			r, size = entity(value)
		}
		value = value[size:]
		if r > ' ' {
			s.WriteRune(r)
		}
	}
	return strings.ToLower(s.String())
}

// checkEntities returns a problem, which follows a subject in messages, if an & begins neither an entity
// of XML nor a character reference. Entities of HTML, such as &nbsp;, are not allowed. R4 narrative.html#xhtml.
func checkEntities(text []byte) (problem string) {
	for {
		at := bytes.IndexByte(text, '&')
		if at < 0 {
			return ""
		}
		_, size := entity(text[at:])
		if size == 0 {
			return "has an & that does not begin one of &amp; &lt; &gt; &quot; &apos; or a character reference such as &#160;; write &amp; for a literal &"
		}
		text = text[at+size:]
	}
}

var namedEntities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// entity returns the character and the size of the entity at the start of text. size is 0 if it is
// invalid.
func entity(text []byte) (r rune, size int) {
	const longest = len("&#x10FFFF;")
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return '&', 0
	}
	name := string(text[1:end])
	if r, ok := namedEntities[name]; ok {
		return r, end + 1
	}
	number, base := strings.TrimPrefix(name, "#"), 10
	if hex, ok := strings.CutPrefix(number, "x"); ok {
		number, base = hex, 16
	}
	n, err := strconv.ParseUint(number, base, 32)
	if name[0] != '#' || err != nil || n > utf8.MaxRune || !isXMLCharacter(rune(n)) {
		return '&', 0
	}
	return rune(n), end + 1
}

// isXMLText reports whether XML allows all characters of text, which must be UTF-8.
func isXMLText(text []byte) bool {
	for i, c := range text {
		switch {
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return false
		case c == 0xEF && bytes.HasPrefix(text[i:], []byte("\uFFFE")[:2]): // U+FFC0 to U+FFFF
			if r, _ := utf8.DecodeRune(text[i:]); !isXMLCharacter(r) {
				return false
			}
		}
	}
	return true
}

// isXMLCharacter reports whether XML allows the character. XML 1.0 §2.2.
func isXMLCharacter(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case 0xD800 <= r && r <= 0xDFFF, r == 0xFFFE, r == 0xFFFF:
		return false
	}
	return true
}
