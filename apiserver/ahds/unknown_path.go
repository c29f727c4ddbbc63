package ahds

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/suggest"
	"github.com/paddock-health/paddock/apiserver/web"
)

// firstSegments returns the first segments of all paths of the facade, sorted.
func firstSegments(all paths) []string {
	segments := map[string]bool{}
	for path := range all {
		segment, _, _ := strings.Cut(path[1:], "/")
		segments[segment] = true
	}
	return slices.Sorted(maps.Keys(segments))
}

// unknownPath returns the error of a path that the facade does not have. The error names the first
// segment that was probably meant, or all first segments.
func (h *handler) unknownPath(path string) error {
	const base = "/ahds/v1/"
	_, below, _ := strings.Cut(path, base)
	segment, _, _ := strings.Cut(below, "/")
	if meant, ok := suggest.Closest(segment, h.segments); ok && meant != segment {
		return &web.UnknownPathError{Paths: "did you mean " + base + meant + "?"}
	}
	return &web.UnknownPathError{Paths: "the paths of this API begin with /site/{siteId}" + base + " and one of " + strings.Join(h.segments, ", ")}
}
