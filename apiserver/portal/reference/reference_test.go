package reference

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// small is a document with one group, two spellings of an operation, and schemas that contain each other.
const small = `{
"info":{"description":"Cats."},
"tags":[{"name":"Cat","description":"The cats."}],
"paths":{
 "/cat/{id}":{"put":{"tags":["Cat"],"operationId":"updateCat","summary":"Update","responses":{"200":{"description":"Done"}}}},
 "/Cat":{"post":{"tags":["Cat"],"operationId":"create","summary":"Create","responses":{"204":{"description":"Done"}}},"get":{"tags":["Cat"],"operationId":"search","summary":"Search","responses":{"200":{"description":"Done"}}}},
 "/Cat/{id}":{"put":{"tags":["Cat"],"operationId":"updateCat_fhir","summary":"Update","description":"Needs a right.",
  "parameters":[
   {"name":"id","in":"path","required":true,"schema":{"type":"string","pattern":"^c"}},
   {"$ref":"#/components/parameters/colour"},
   {"name":"legs","in":"query","schema":{"type":"array","items":{"type":"integer","maximum":4}}},
   {"name":"criteria","in":"query","schema":{"type":"object","additionalProperties":{"type":"string"}}},
   {"name":"asleep","in":"query","schema":{"type":"boolean"}}],
  "requestBody":{"required":true,"content":{
   "application/a":{"schema":{"$ref":"#/components/schemas/Cat"},"examples":{"tom":{"value":{"name":"Tom"}}}},
   "application/b":{"schema":{"$ref":"#/components/schemas/Cat"}},
   "text/c":{"schema":{"type":"string"},"examples":{"tom":{"value":"Tom\n"}}}}},
  "responses":{"200":{"description":"Done","headers":{"ETag":{"$ref":"#/components/headers/ETag"}},"content":{"application/a":{"schema":{"$ref":"#/components/schemas/Cat"}}}},"404":{"$ref":"#/components/responses/404"}}}}},
"components":{
 "securitySchemes":{"issuer":{"description":"A token."}},
 "parameters":{"colour":{"name":"Colour","in":"header","description":"Its colour.","schema":{"type":"string","enum":["black","red"]}}},
 "headers":{"ETag":{"description":"The version."}},
 "responses":{"404":{"description":"Not Found","content":{"application/problem":{"schema":{"type":"object"}}}}},
 "schemas":{
  "Cat":{"type":"object","required":["name"],"allOf":[{"anyOf":[{"required":["chip"]},{"required":["_chip"]}]}],"properties":{
   "name":{"type":"string","minLength":1},"_chip":{"$ref":"#/components/schemas/Cat"},"chip":{"type":["string","null"]},
   "kittens":{"type":"array","maxItems":9,"items":{"$ref":"#/components/schemas/Cat"}},
   "homes":{"type":"array","items":{"type":"object","required":["street"],"properties":{"street":{"type":"string","description":"The street."}}}}}},
  "Litter":{"allOf":[{"$ref":"#/components/schemas/Cat"},{"properties":{"kind":{"const":"litter"}}}]},
  "Any":{"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Litter"}]}}}}`

func read(t *testing.T) *Reference {
	t.Helper()
	r, err := New([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// equal compares what was read with what is wanted. Empty lists are like absent ones.
func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Reference{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var cats = Group{"Cat", "The cats.", []Entry{
	{ID: "search", Method: "GET", Path: "/Cat", Summary: "Search"},
	{ID: "create", Method: "POST", Path: "/Cat", Summary: "Create"},
	{ID: "updateCat_fhir", Method: "PUT", Path: "/Cat/{id}", Summary: "Update", Also: "/cat/{id}"},
}}

func TestList(t *testing.T) {
	r := read(t)
	equal(t, r, &Reference{Description: "Cats.", Tokens: []Token{{"issuer", "A token."}}, Groups: []Group{cats}, Schemas: []string{"Any", "Cat", "Litter"}})
	if r.Count() != 3 {
		t.Errorf("got %d operations, want 3", r.Count())
	}
}

func TestOperation(t *testing.T) {
	cat := Value{Type: []Piece{{"Cat", "Cat"}}}
	text := Value{Type: []Piece{{Text: "string"}}}
	want := Operation{
		Entry: cats.Operations[2], Group: cats, Description: "Needs a right.",
		Parameters: []Parameter{
			{Name: "id", In: "path", Required: true, Value: Value{text.Type, []string{"pattern ^c"}}},
			{Name: "Colour", In: "header", Description: "Its colour.", Value: Value{text.Type, []string{"one of black, red"}}, Choices: []string{"black", "red"}},
			{Name: "legs", In: "query", Value: Value{[]Piece{{Text: "array of "}, {Text: "integer"}}, []string{"each up to 4"}}, Repeated: true},
			{Name: "criteria", In: "query", Value: Value{Type: []Piece{{Text: "object with values of type "}, {Text: "string"}}}, Named: true},
			{Name: "asleep", In: "query", Value: Value{Type: []Piece{{Text: "boolean"}}}, Choices: []string{"true", "false"}},
		},
		Body: &Body{Required: true, Contents: []Content{
			{MediaTypes: []string{"application/a", "application/b"}, Value: cat, Fields: fieldsOfCat, Example: "{\n  \"name\": \"Tom\"\n}"},
			{MediaTypes: []string{"text/c"}, Value: text, Example: "Tom"},
		}},
		Responses: []Response{
			{Status: "200", Description: "Done", Headers: []Header{{"ETag", "The version."}}, Contents: []Content{{MediaTypes: []string{"application/a"}, Value: cat}}},
			{Status: "404", Description: "Not Found", Contents: []Content{{MediaTypes: []string{"application/problem"}, Value: Value{Type: []Piece{{Text: "object"}}}}}},
		},
		Accepts: []string{"application/a"},
	}
	for _, id := range []string{"updateCat", "updateCat_fhir"} {
		got, found, err := read(t).Operation(id)
		if !found || err != nil {
			t.Fatalf("%s: got %v, %v", id, found, err)
		}
		equal(t, got, want)
	}
	if _, found, err := read(t).Operation("none"); found || err != nil {
		t.Errorf("no operation: got %v, %v", found, err)
	}
}

var fieldsOfCat = []Field{
	{Name: "chip", Value: Value{Type: []Piece{{Text: "string or null"}}}},
	{Name: "homes", Value: Value{Type: []Piece{{Text: "array of "}, {Text: "object"}}}},
	{Name: "homes[].street", Description: "The street.", Required: true, Value: Value{Type: []Piece{{Text: "string"}}}},
	{Name: "kittens", Value: Value{[]Piece{{Text: "array of "}, {"Cat", "Cat"}}, []string{"up to 9 items"}}},
	{Name: "name", Required: true, Value: Value{[]Piece{{Text: "string"}}, []string{"1 or more characters"}}},
}

func TestSchema(t *testing.T) {
	for _, want := range []Schema{
		{Name: "Cat", Value: Value{Type: []Piece{{Text: "object"}}}, Fields: fieldsOfCat, Required: [][]string{{"chip", "_chip"}}, Extensible: true},
		{
			Name: "Litter", Value: Value{Type: []Piece{{"Cat", "Cat"}, {Text: " with "}, {Text: "the fields below"}}},
			Fields: []Field{{Name: "kind", Value: Value{Type: []Piece{{Text: `"litter"`}}}}},
		},
		{Name: "Any", Value: Value{Type: []Piece{{"Cat", "Cat"}, {Text: " or "}, {"Litter", "Litter"}}}},
	} {
		got, found, err := read(t).Schema(want.Name)
		if !found || err != nil {
			t.Fatalf("%s: got %v, %v", want.Name, found, err)
		}
		equal(t, got, want)
	}
	if _, found, err := read(t).Schema("none"); found || err != nil {
		t.Errorf("no schema: got %v, %v", found, err)
	}
}

func TestNewRefusesOtherDocuments(t *testing.T) {
	for _, text := range []string{"", `{"paths":{"/":{"get":{"tags":[]}}}}`} {
		if _, err := New([]byte(text)); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}
