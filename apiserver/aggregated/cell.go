package aggregated

import (
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// elements are the elements of a resource, not decoded. A cell decodes the few that it prints.
type elements map[string]jsontext.Value

// elementsOf returns the elements of a resource, none if it is not a JSON object.
func elementsOf(resource []byte) elements {
	return read[elements](resource)
}

// read decodes a value. It returns the zero value if the value is missing or not as in R4, so that
// only the cell is empty and the row is still printed.
func read[T any](value jsontext.Value) T {
	var read, nothing T
	if len(value) == 0 || jsonv2.Unmarshal(value, &read) != nil {
		return nothing
	}
	return read
}

// cell returns the text of a column for a resource.
type cell func(elements) string

// one prints an element that does not repeat.
func one[T fmt.Stringer](name string) cell {
	return func(resource elements) string { return read[T](resource[name]).String() }
}

// first prints the first value of an element whose text is not empty.
func first[T fmt.Stringer](name string) cell {
	return func(resource elements) string {
		for _, value := range read[[]jsontext.Value](resource[name]) {
			if shown := read[T](value).String(); shown != "" {
				return shown
			}
		}
		return ""
	}
}

// all prints all values of an element.
func all[T fmt.Stringer](name string) cell {
	return func(resource elements) string {
		var shown []string
		for _, value := range read[[]jsontext.Value](resource[name]) {
			if one := read[T](value).String(); one != "" {
				shown = append(shown, one)
			}
		}
		return strings.Join(shown, ", ")
	}
}

// either prints the first cell whose text is not empty.
func either(cells ...cell) cell {
	return func(resource elements) string {
		for _, c := range cells {
			if shown := c(resource); shown != "" {
				return shown
			}
		}
		return ""
	}
}
