package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

const paramPhonetic = "phonetic"

// textReaders read strings. R4 search.html#string.
func textReaders(d definition) map[string]reader {
	if d.name == paramPhonetic {
		return map[string]reader{"": anyOf((*parser).sounds)}
	}
	return map[string]reader{
		"":         anyOf((*parser).text),
		"contains": anyOf((*parser).contained),
		"exact":    anyOf((*parser).exactly),
	}
}

// text reads what a text starts with, whatever its case and accents.
func (p *parser) text(d definition, item string) (store.Condition, error) {
	return folded(d, item, store.StartsWith)
}

// contained reads what is anywhere in a text.
func (p *parser) contained(d definition, item string) (store.Condition, error) {
	return folded(d, item, store.Contains)
}

func folded(d definition, item string, match store.TextMatch) (store.Condition, error) {
	text, err := unescape(item)
	if err != nil {
		return nil, err
	}
	text = fold.String(text)
	if text == "" { // would match everything
		return nil, fmt.Errorf("%s has nothing in it to look for", r4.Quote(item))
	}
	return store.TextIs{Param: d.name, Match: match, Text: text}, nil
}

// exactly reads a whole text.
func (p *parser) exactly(d definition, item string) (store.Condition, error) {
	text, err := unescape(item)
	return store.TextIs{Param: d.name, Match: store.Exactly, Text: text}, err
}

// sounds reads words, all of which a name must have one that sounds like it for.
func (p *parser) sounds(d definition, item string) (store.Condition, error) {
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
		if err := p.spend(len(either)); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no word in Latin letters that sounds like anything", r4.Quote(item))
	}
	return all, nil
}
