// Package reference reads an OpenAPI document as the pages of the API reference show it. There is a
// list of operations, one page for each operation, and one for each schema. Pages refer to other
// schemas by their names, so that a page is small although the schemas of FHIR contain each other.
// It reads the parts of OpenAPI and JSON Schema that package openapi writes.
package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference is an OpenAPI document. It is safe for concurrent use.
type Reference struct {
	Description string
	// Tokens are the kinds of tokens by which callers authenticate, sorted by name.
	Tokens []Token
	Groups []Group
	// Schemas are the names of the schemas, sorted.
	Schemas []string

	operations map[string]listed // by operationId
	components components
}

// Token is a kind of token.
type Token struct{ Name, Description string }

// Group is a tag of the document with its operations, sorted by path and method.
type Group struct {
	Name, Description string
	Operations        []Entry
}

// Entry is an operation as the list shows it.
type Entry struct {
	ID, Method, Path, Summary string
	// Also is a second path with the same meaning. It is empty if there is none.
	Also string
}

// listed is where to find an operation.
type listed struct {
	entry Entry
	group string
	text  json.RawMessage
}

// components are the texts of the document's components by kind and name, such as schemas and Patient.
type components map[string]map[string]json.RawMessage

// document is what New reads of the document.
type document struct {
	Info       struct{ Description string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]json.RawMessage
	Components components
}

// New reads an OpenAPI document. It returns an error if the text is no such document, or if an
// operation does not have exactly one tag.
func New(text []byte) (*Reference, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	r := &Reference{
		Description: d.Info.Description, Schemas: slices.Sorted(maps.Keys(d.Components["schemas"])),
		operations: map[string]listed{}, components: d.Components,
	}
	for path, methods := range d.Paths {
		for method, text := range methods {
			var head struct {
				Tags                 []string
				OperationID, Summary string
			}
			if err := json.Unmarshal(text, &head); err != nil {
				return nil, fmt.Errorf("read the operation %s %s: %w", method, path, err)
			}
			if len(head.Tags) != 1 {
				return nil, fmt.Errorf("read the operation %s %s: it has the tags %q; it must have exactly one tag", method, path, head.Tags)
			}
			entry := Entry{ID: head.OperationID, Method: strings.ToUpper(method), Path: path, Summary: head.Summary}
			r.operations[entry.ID] = listed{entry, head.Tags[0], text}
		}
	}
	shown := r.joinSpellings()
	for _, tag := range d.Tags {
		r.Groups = append(r.Groups, Group{tag.Name, tag.Description, shown[tag.Name]})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components["securitySchemes"])) {
		var scheme struct{ Description string }
		if err := json.Unmarshal(d.Components["securitySchemes"][name], &scheme); err != nil {
			return nil, fmt.Errorf("read the security scheme %s: %w", name, err)
		}
		r.Tokens = append(r.Tokens, Token{name, scheme.Description})
	}
	return r, nil
}

// spelledAsFHIR is the end of the operationId of an operation in whose path the type is spelled as in
// FHIR. The operation whose id lacks this end has the other spelling in its path, and is otherwise the
// same.
const spelledAsFHIR = "_fhir"

// joinSpellings makes one operation of two that differ only in the spelling of their path. The ids of
// both then find this operation. It returns the operations that are left by group, sorted by path and
// method.
func (r *Reference) joinSpellings() map[string][]Entry {
	for id, operation := range r.operations {
		base, suffixed := strings.CutSuffix(id, spelledAsFHIR)
		if other, both := r.operations[base]; suffixed && both {
			operation.entry.Also = other.entry.Path
			r.operations[id], r.operations[base] = operation, operation
		}
	}
	shown := map[string][]Entry{}
	for id, operation := range r.operations {
		if operation.entry.ID == id {
			shown[operation.group] = append(shown[operation.group], operation.entry)
		}
	}
	for _, entries := range shown {
		slices.SortFunc(entries, func(a, b Entry) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(rank(a.Method), rank(b.Method)))
		})
	}
	return shown
}

// methods are the methods of requests in the order in which they are shown.
var methods = []string{"OPTIONS", "GET", "POST", "PUT", "PATCH", "DELETE"}

func rank(method string) int { return slices.Index(methods, method) }

// group returns the group with a name.
func (r *Reference) group(name string) Group {
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{Name: name}
	}
	return r.Groups[i]
}

// Count returns the number of operations in all groups.
func (r *Reference) Count() int {
	count := 0
	for _, g := range r.Groups {
		count += len(g.Operations)
	}
	return count
}

// decode decodes a part of the document and keeps numbers as they are written.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// resolve returns a part of the document, or the component to which the part refers by $ref.
func (c components) resolve(part json.RawMessage) (json.RawMessage, error) {
	var reference struct {
		Ref string `json:"$ref"`
	}
	if err := json.Unmarshal(part, &reference); err != nil || reference.Ref == "" {
		return part, err
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(reference.Ref, "#/components/"), "/")
	if component, found := c[kind][name]; found {
		return component, nil
	}
	return nil, fmt.Errorf("the OpenAPI document has no component %s", reference.Ref)
}
