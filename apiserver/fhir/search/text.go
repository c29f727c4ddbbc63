package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

const paramPhonetic = "phonetic"

// textReaders returns the readers of string parameters. R4 search.html#string.
func textReaders(d definition) map[string]reader {
	if d.name == paramPhonetic {
		return map[string]reader{"": anyOf((*parser).soundsLike)}
	}
	return map[string]reader{
		"":         anyOf((*parser).text),
		"contains": anyOf((*parser).containsText),
		"exact":    anyOf((*parser).exactText),
	}
}

// text matches the start of a text, without regard to case and accents.
func (p *parser) text(d definition, item string) (store.Condition, error) {
	return foldedText(d, item, store.StartsWith)
}

// containsText parses the modifier :contains.
func (p *parser) containsText(d definition, item string) (store.Condition, error) {
	return foldedText(d, item, store.Contains)
}

func foldedText(d definition, item string, match store.TextMatch) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	text = fold.String(text)
	if text == "" { // an empty text would match everything
		return nil, fmt.Errorf("%s has only white space or accents; give a text to search for", r4.Quote(item))
	}
	return store.TextIs{Param: d.name, Match: match, Text: text}, nil
}

// exactText parses the modifier :exact, and URIs.
func (p *parser) exactText(d definition, item string) (store.Condition, error) {
	text, err := unescape(item)
	return store.TextIs{Param: d.name, Match: store.Exactly, Text: text}, err
}

// soundsLike parses words. A name matches if it has, for each searched word, a word that sounds
// alike. A searched word without Latin letters is ignored, unless no searched word has any.
func (p *parser) soundsLike(d definition, item string) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	var all store.All
	for word := range strings.FieldsSeq(text) {
		var either store.Any
		for _, code := range fold.Phonetic(word) {
			either = append(either, store.TextIs{Param: d.name, Match: store.Exactly, Text: code})
		}
		if len(either) > 0 {
			all = append(all, either)
		}
		if err := p.addValues(len(either)); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no word with a sound in Latin letters; give a name such as Smith", r4.Quote(item))
	}
	return all, nil
}
