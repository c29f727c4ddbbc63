// Package events creates the events of a Site: those of changes of records, and those that other
// programs publish. It defines the types of events, their content, and which webhooks get them.
// Storage engines store events with the change, and apiserver/delivery sends them.
package events

import (
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Type is a type of events, with its entry in types.json.
type Type struct {
	Name        string `json:"eventType"`
	Description string `json:"description"`
	// Schema is the JSON Schema of the data of an event. Data that clients publish should conform to
	// the schema, but is not validated.
	Schema jsontext.Value `json:"schema"`
	// Example is data that conforms to Schema.
	Example jsontext.Value `json:"example"`
}

//go:embed types.json
var typesJSON []byte

var types = func() []Type {
	var all []Type
	if err := json.Unmarshal(typesJSON, &all); err != nil {
		panic("apiserver/events/types.json: " + err.Error())
	}
	for i := range all {
		for _, text := range []*jsontext.Value{&all[i].Schema, &all[i].Example} {
			if err := text.Compact(); err != nil {
				panic("apiserver/events/types.json: " + err.Error())
			}
		}
	}
	return all
}()

// Types returns all types of events, in the order of types.json.
func Types() []Type { return slices.Clone(types) }

// TypeNames returns the names of all types of events, in the order of types.json.
func TypeNames() []string {
	names := make([]string, len(types))
	for i := range types {
		names[i] = types[i].Name
	}
	return names
}

// TypeOf returns the type with a name, and whether there is one.
func TypeOf(name string) (Type, bool) {
	at := slices.IndexFunc(types, func(t Type) bool { return t.Name == name })
	if at < 0 {
		return Type{}, false
	}
	return types[at], true
}
