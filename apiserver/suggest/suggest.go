// Package suggest makes the ends of error messages about unknown names, for all APIs: the known name
// that was probably meant, or all known names. It depends on nothing of this project.
package suggest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxLength is the maximum length in bytes of an unknown name that is compared with the known names. A
// longer name counts as similar to none.
const maxLength = 64

// Closest returns the known name that is most similar to an unknown one. It returns false if no known
// name is similar.
func Closest(unknown string, known []string) (name string, ok bool) {
	const maxDistance = 3 // and at most half of the bytes of unknown
	if len(unknown) > maxLength {
		return "", false
	}
	distance := min(maxDistance, len(unknown)/2) + 1
	for _, each := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(unknown), strings.ToLower(each)); d < distance {
			name, distance = each, d
		}
	}
	return name, name != ""
}

// Among returns the end of an error message about an unknown name, which begins with "; ". It has the
// known name that is most similar or, if none is similar, the value of list and all known names.
func Among(unknown string, known []string, list string) string {
	if name, ok := Closest(unknown, known); ok {
		return "; did you mean " + name + "?"
	}
	return "; " + list + " " + strings.Join(known, ", ")
}
