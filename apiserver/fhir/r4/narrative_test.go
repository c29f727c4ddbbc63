package r4

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzNarrative reads each narrative that is taken with an XML parser too: it must
// be well-formed, and have nothing but what is allowed.
func FuzzNarrative(f *testing.F) {
	const start, end = `<div xmlns="http://www.w3.org/1999/xhtml">`, `</div>`
	for _, seed := range []string{
		"a", "<p>a</p>", "<br/>", "<img src='#a'/>", "a &amp; b&#160;", "<!-- a --> b", "<![CDATA[<]]>", "<a href=\"javascript:x\">b</a>",
		"<script/>", "<p onclick='a'>b</p>", "<table><tr><td colspan=\"2\">a</td></tr></table>", "<p a='b", "&nbsp;", "<p><b>a</p></b>", "<!DOCTYPE a>",
	} {
		f.Add(start + seed + end)
	}
	for _, r := range loadRejects(f) {
		if r.code == invariantXHTML || r.code == invariantContent {
			f.Add(r.body)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		if _, problem := checkNarrative([]byte(text)); problem != "" {
			return
		}
		d := xml.NewDecoder(strings.NewReader(text))
		said := false
		for {
			token, err := d.RawToken()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %q", err, text)
			}
			switch token := token.(type) {
			case xml.StartElement:
				said = said || token.Name.Local == "img"
				checkStartElement(t, token)
			case xml.CharData:
				said = said || strings.TrimSpace(string(token)) != ""
			case xml.ProcInst, xml.Directive:
				t.Fatalf("%T in %q", token, text)
			}
		}
		if !said {
			t.Errorf("nothing is said in %q", text)
		}
	})
}

func checkStartElement(t *testing.T, element xml.StartElement) {
	if element.Name.Space != "" || !narrativeElements[element.Name.Local] {
		t.Errorf("element %v", element.Name)
	}
	for _, attribute := range element.Attr {
		name := attribute.Name.Local
		if attribute.Name.Space != "" {
			name = attribute.Name.Space + ":" + name
		}
		if !narrativeAttributes[name] && !narrativeAttributes[element.Name.Local+"."+name] {
			t.Errorf("attribute %s of %s", name, element.Name.Local)
		}
		value := strings.ToLower(strings.Join(strings.Fields(attribute.Value), ""))
		if name != "title" && strings.HasPrefix(value, "javascript:") && (name == "href" || name == "src") {
			t.Errorf("attribute %s with the value %q", name, attribute.Value)
		}
	}
}
