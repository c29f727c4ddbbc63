package r4

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Token is a searchable value of a token parameter. R4 search.html#token.
type Token struct {
	// Param is the search parameter.
	Param string
	// System is empty when the value has none.
	System, Code string
}

// Tokens finds the tokens of a resource that Read has accepted: its identifiers,
// which all types have at the top.
func Tokens(body []byte) []Token {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body))
	if decoder.PeekKind() != jsontext.KindBeginObject {
		return nil
	}
	var tokens []Token
	_ = members(decoder, func(name string) error { // what was found before the end will do
		if name != "identifier" {
			return decoder.SkipValue()
		}
		if decoder.PeekKind() == jsontext.KindBeginObject {
			return appendIdentifier(decoder, &tokens)
		}
		return elements(decoder, func() error { return appendIdentifier(decoder, &tokens) })
	})
	return tokens
}

func appendIdentifier(decoder *jsontext.Decoder, tokens *[]Token) error {
	if decoder.PeekKind() != jsontext.KindBeginObject {
		return decoder.SkipValue()
	}
	token := Token{Param: "identifier"}
	err := members(decoder, func(name string) error {
		into := map[string]*string{"system": &token.System, "value": &token.Code}[name]
		if into == nil || decoder.PeekKind() != jsontext.KindString {
			return decoder.SkipValue()
		}
		text, err := decoder.ReadToken()
		if err == nil {
			*into = text.String()
		}
		return err
	})
	if token.System != "" || token.Code != "" {
		*tokens = append(*tokens, token)
	}
	return err
}

// members reads an object; member has to read the value of the member it is told.
func members(decoder *jsontext.Decoder, member func(name string) error) error {
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() == jsontext.KindString {
		name, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}

// elements reads an array; element has to read one of its values.
func elements(decoder *jsontext.Decoder, element func() error) error {
	if decoder.PeekKind() != jsontext.KindBeginArray {
		return decoder.SkipValue()
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}
