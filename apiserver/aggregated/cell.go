package aggregated

import (
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// elements are those of a resource, unread: a cell reads the few that it shows.
type elements map[string]jsontext.Value

// elementsOf are none where the resource is no object.
func elementsOf(resource []byte) elements {
	return read[elements](resource)
}

// read is empty where the value is missing or of another shape than R4's: that
// leaves a cell empty, not a list without the row.
func read[T any](value jsontext.Value) T {
	var read, nothing T
	if len(value) == 0 || jsonv2.Unmarshal(value, &read) != nil {
		return nothing
	}
	return read
}

// cell is what a column shows of a resource.
type cell func(elements) string

// one shows an element that does not repeat.
func one[T fmt.Stringer](name string) cell {
	return func(resource elements) string { return read[T](resource[name]).String() }
}

// first shows the first of the values of an element that has something to show.
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

// all shows all values of an element.
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

// either shows the first of several cells that has something to show.
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
