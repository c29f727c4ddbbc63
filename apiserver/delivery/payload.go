package delivery

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/jsonwalk"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Payload returns the body of the request for an event, which is its Envelope. If fields is not
// empty, data has only the members that fields names. If the event is restricted and cleared is
// false, data is omitted.
func Payload(event store.AcceptedEvent, fields []string, cleared bool) ([]byte, error) {
	return payload(event.Envelope, fields, event.Restricted && !cleared)
}

// payload returns an envelope, without data, or with only the given members of data. The same
// arguments always give the same bytes.
func payload(envelope []byte, fields []string, withoutData bool) ([]byte, error) {
	if len(fields) == 0 && !withoutData {
		return envelope, nil
	}
	projected, err := rewrite(envelope, func(name string, value jsontext.Value) (jsontext.Value, error) {
		switch {
		case name != "data":
			return value, nil
		case withoutData:
			return nil, nil
		case value.Kind() != jsontext.KindBeginObject:
			return value, nil
		}
		return rewrite(value, func(name string, value jsontext.Value) (jsontext.Value, error) {
			if slices.Contains(fields, name) {
				return value, nil
			}
			return nil, nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("parse the envelope of an event: %w", err)
	}
	return projected, nil
}

// rewrite returns an object with the result of change for each member, in their order. It omits
// members for which change returns nil.
func rewrite(object []byte, change func(name string, value jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	text := []byte{'{'}
	for m, err := range jsonwalk.Members(object) {
		if err != nil {
			return nil, err
		}
		value, err := change(m.Name, m.Value)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		if text, err = jsontext.AppendQuote(text, m.Name); err != nil {
			return nil, err
		}
		text = append(append(text, ':'), value...)
	}
	return append(text, '}'), nil
}
