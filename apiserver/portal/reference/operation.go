package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Operation is an operation with what its page shows.
type Operation struct {
	Entry
	Group       Group
	Description string
	Parameters  []Parameter
	// Body is nil if requests have none.
	Body      *Body
	Responses []Response
	// Accepts are the media types of successful responses, sorted.
	Accepts []string
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name, Description string
	// In is path, query or header.
	In       string
	Required bool
	Value    Value
	// Choices are the possible values. Choices is empty if other values are possible too.
	Choices []string
	// Repeated is set if the parameter can be repeated. Named is set if its value is an object: a request
	// then has a parameter for each member, with the name of the member.
	Repeated, Named bool
}

// Body is the body of requests.
type Body struct {
	Description string
	Required    bool
	Contents    []Content
}

// Content is a body of one schema, in one or several media types.
type Content struct {
	MediaTypes []string
	Value      Value
	// Fields are the fields of the schema. Only bodies of requests have them.
	Fields []Field
	// Example is empty if there is none.
	Example string
}

// Response is the response with a status.
type Response struct {
	Status, Description string
	Headers             []Header
	Contents            []Content
}

// Header is a header field of a response.
type Header struct{ Name, Description string }

// The parts of an operation in the document.
type (
	operation struct {
		Description string
		Parameters  []json.RawMessage
		RequestBody *body
		Responses   map[string]json.RawMessage
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	body struct {
		Description string
		Required    bool
		Content     map[string]content
	}
	content struct {
		Schema   schema
		Examples map[string]struct{ Value json.RawMessage }
	}
	response struct {
		Description string
		Headers     map[string]json.RawMessage
		Content     map[string]content
	}
)

// Operation returns the operation with an operationId. It reports false if there is none.
func (r *Reference) Operation(id string) (Operation, bool, error) {
	found, ok := r.operations[id]
	if !ok {
		return Operation{}, false, nil
	}
	shown, err := r.operation(found)
	if err != nil {
		return Operation{}, false, fmt.Errorf("read the operation %s: %w", id, err)
	}
	return shown, true, nil
}

func (r *Reference) operation(found listed) (Operation, error) {
	var read operation
	if err := decode(found.text, &read); err != nil {
		return Operation{}, err
	}
	shown := Operation{Entry: found.entry, Group: r.group(found.group), Description: read.Description}
	for _, text := range read.Parameters {
		p, err := r.parameter(text)
		if err != nil {
			return Operation{}, err
		}
		shown.Parameters = append(shown.Parameters, p)
	}
	if b := read.RequestBody; b != nil {
		contents, err := r.contents(b.Content, true)
		if err != nil {
			return Operation{}, err
		}
		shown.Body = &Body{b.Description, b.Required, contents}
	}
	accepts := map[string]bool{}
	for _, status := range slices.Sorted(maps.Keys(read.Responses)) {
		answer, err := r.response(status, read.Responses[status])
		if err != nil {
			return Operation{}, err
		}
		shown.Responses = append(shown.Responses, answer)
		for _, c := range answer.Contents {
			for _, mediaType := range c.MediaTypes {
				accepts[mediaType] = accepts[mediaType] || status < "300"
			}
		}
	}
	maps.DeleteFunc(accepts, func(_ string, success bool) bool { return !success })
	shown.Accepts = slices.Sorted(maps.Keys(accepts))
	return shown, nil
}

func (r *Reference) parameter(text json.RawMessage) (Parameter, error) {
	text, err := r.components.resolve(text)
	if err != nil {
		return Parameter{}, err
	}
	var read parameter
	if err := decode(text, &read); err != nil {
		return Parameter{}, err
	}
	shown := Parameter{
		Name: read.Name, Description: read.Description, In: read.In, Required: read.Required, Value: read.Schema.value(),
		Choices: read.Schema.words("enum"), Repeated: read.Schema["type"] == "array", Named: read.Schema["type"] == "object",
	}
	if read.Schema["type"] == "boolean" {
		shown.Choices = []string{"true", "false"}
	}
	return shown, nil
}

func (r *Reference) response(status string, text json.RawMessage) (Response, error) {
	text, err := r.components.resolve(text)
	if err != nil {
		return Response{}, err
	}
	var read response
	if err := decode(text, &read); err != nil {
		return Response{}, err
	}
	shown := Response{Status: status, Description: read.Description}
	for _, name := range slices.Sorted(maps.Keys(read.Headers)) {
		text, err := r.components.resolve(read.Headers[name])
		if err != nil {
			return Response{}, err
		}
		header := Header{Name: name}
		if err := decode(text, &header); err != nil {
			return Response{}, err
		}
		shown.Headers = append(shown.Headers, header)
	}
	shown.Contents, err = r.contents(read.Content, false)
	return shown, err
}

// contents returns the bodies of a request or response. Media types with the same schema share one
// Content, which has the example of the first of them.
func (r *Reference) contents(of map[string]content, withFields bool) ([]Content, error) {
	var all []Content
	for _, mediaType := range slices.Sorted(maps.Keys(of)) {
		value := of[mediaType].Schema.value()
		if i := slices.IndexFunc(all, func(c Content) bool { return reflect.DeepEqual(c.Value, value) }); i >= 0 {
			all[i].MediaTypes = append(all[i].MediaTypes, mediaType)
			continue
		}
		shown := Content{MediaTypes: []string{mediaType}, Value: value}
		for _, name := range slices.Sorted(maps.Keys(of[mediaType].Examples)) {
			shown.Example = textOf(of[mediaType].Examples[name].Value)
			break
		}
		if withFields {
			whole, err := r.components.schema(of[mediaType].Schema)
			if err != nil {
				return nil, err
			}
			shown.Fields = whole.fields("")
		}
		all = append(all, shown)
	}
	return all, nil
}

// textOf returns an example as people write it: indented JSON, or the text of a string.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.TrimSuffix(text, "\n")
	}
	var indented bytes.Buffer
	if json.Indent(&indented, value, "", "  ") != nil {
		return string(value)
	}
	return indented.String()
}
