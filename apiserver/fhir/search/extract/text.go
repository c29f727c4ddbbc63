package extract

import (
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// textOf returns a text and reports whether anything is left of it after folding.
func textOf(text []byte) (store.Text, bool) {
	original := string(text)
	folded := fold.String(original)
	return store.Text{Folded: folded, Original: original}, folded != ""
}

// text adds a string. For the parameter phonetic it adds phonetic codes instead.
func (e *extractor) text(json []byte) {
	if e.param.phonetic {
		for _, code := range fold.Phonetic(string(unquote(json))) {
			e.add(store.Text{Folded: code, Original: code})
		}
		return
	}
	if text, ok := textOf(unquote(json)); ok {
		e.add(text)
	}
}

// parts adds the parts of a HumanName or an Address. R4 search.html#string.
func (e *extractor) parts(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		switch string(name) {
		case "text", "family", "city", "district", "state", "postalCode", "country":
			e.text(value)
		case "given", "prefix", "suffix", "line":
			for items := arrayOf(value); ; {
				item, ok := items.item()
				if !ok {
					break
				}
				e.text(item)
			}
		}
	}
}

// uri adds a URI, which is compared exactly.
func (e *extractor) uri(json []byte) {
	if uri := string(unquote(json)); uri != "" {
		e.add(store.Text{Folded: uri, Original: uri})
	}
}
