package aggregated

import (
	"strings"
	"unicode"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// describeType returns the description of a datatype or backbone element.
func describeType(typeName string) string {
	if parent, element, ok := strings.Cut(typeName, "."); ok {
		return typeName + " is the content of the element " + element + " of " + parent + "."
	}
	return typeName + " is the FHIR R4 datatype " + typeName + ", http://hl7.org/fhir/R4/" + page(typeName) + "."
}

// page returns the page of a datatype in the specification, with its anchor.
func page(typeName string) string {
	switch typeName {
	case "Extension", "Element":
		return strings.ToLower(typeName) + ".html"
	case "Meta":
		return "resource.html#Meta"
	case "Narrative":
		return "narrative.html"
	case "Reference":
		return "references.html"
	default:
		return "datatypes.html#" + typeName
	}
}

// describe returns the description of an element: its meaning, its cardinality, and its type as in
// the specification.
func describe(typeName string, e r4.ElementDefinition) string {
	least, most := "0", "1"
	if e.Required {
		least = "1"
	}
	if e.Repeated {
		most = "*"
	}
	text := phrase(typeName, e) + " " + least + ".." + most + ", " + typeOf(e)
	if e.Choice() {
		text += ", one of " + e.Base + "[x]"
	}
	return text + "."
}

func typeOf(e r4.ElementDefinition) string {
	if e.Type != "Reference" {
		return e.Type
	}
	if len(e.Targets) == 0 {
		return "Reference(Any)"
	}
	return "Reference(" + strings.Join(e.Targets, "|") + ")"
}

// phrase returns the meaning of an element. For most elements it is the words of the name.
func phrase(typeName string, e r4.ElementDefinition) string {
	for _, key := range []string{typeName + "." + e.Name, typeName + "." + e.Base, e.Base} {
		if text, ok := phrases[key]; ok {
			return text + "."
		}
	}
	words := wordsOf(e.Base)
	if e.Repeated {
		words = plural(words)
	}
	_, inside, component := strings.Cut(typeName, ".")
	if !component {
		inside = typeName
	}
	return strings.ToUpper(words[:1]) + words[1:] + " of the " + wordsOf(inside) + "."
}

// wordsOf returns the words of an element's or type's name: birth date for birthDate.
func wordsOf(name string) string {
	var words strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	return words.String()
}

func plural(words string) string {
	switch {
	case strings.HasSuffix(words, "s"):
		return words + "es"
	case strings.HasSuffix(words, "y"):
		return strings.TrimSuffix(words, "y") + "ies"
	default:
		return words + "s"
	}
}
