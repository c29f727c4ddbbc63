package web

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// MediaRange is an item of an Accept header. RFC 9110 §12.5.1.
type MediaRange struct {
	// Type is a media type, such as text/csv, or a range of media types, such as text/* or */*. It is
	// empty if the item is invalid.
	Type   string
	Params map[string]string
	// Quality is the weight q, from 0 to 1. It is 1 if q is missing or invalid.
	Quality float64
}

// ParseAccept returns the items of the Accept header, and nil if there is no such header.
func ParseAccept(header http.Header) []MediaRange {
	var ranges []MediaRange
	for item := range strings.SplitSeq(strings.Join(header.Values("Accept"), ","), ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		kind, params, err := mime.ParseMediaType(item)
		if err != nil {
			kind = ""
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		if err != nil || !(quality >= 0 && quality <= 1) { // NaN fails both comparisons
			quality = 1
		}
		ranges = append(ranges, MediaRange{Type: kind, Params: params, Quality: quality})
	}
	return ranges
}

// Preference returns the quality of a media type: the quality of the most specific range that covers
// the media type, or 0 if no range covers it. at is the index of the first range without a wildcard
// that equals the media type, or len(ranges). RFC 9110 §12.5.1.
func Preference(ranges []MediaRange, mediaType string) (quality float64, at int) {
	general, _, _ := strings.Cut(mediaType, "/")
	bySpecificity := []string{"*/*", general + "/*", mediaType}
	specificity, at := -1, len(ranges)
	for i, r := range ranges {
		s := slices.Index(bySpecificity, r.Type)
		if r.Type == mediaType {
			at = min(at, i)
		}
		if s > specificity {
			specificity, quality = s, r.Quality
		}
	}
	return quality, at
}

// NotAcceptableError is returned for a request that accepts none of the media types in which the
// response can be sent. In is the name of the header field or parameter, and Value is its value.
type NotAcceptableError struct {
	In, Value string
	Supported []string
}

func (e *NotAcceptableError) Error() string {
	return fmt.Sprintf("%s: %.100q is not supported; supported media types: %s", e.In, e.Value, strings.Join(e.Supported, ", "))
}

// MediaTypeError is returned for a request body whose Content-Type is not supported.
type MediaTypeError struct {
	// Problem is the error message.
	Problem string
	// Supported are the media types that the path supports. An error of ParseContentType has them.
	Supported []string
}

func (e *MediaTypeError) Error() string { return e.Problem }

// ParseContentType returns the media type and the parameters in Content-Type. A media type that is
// not in supported and a charset other than UTF-8 are errors. Without a Content-Type, the media type
// is empty. Errors: *MediaTypeError.
func ParseContentType(header http.Header, supported ...string) (mediaType string, params map[string]string, err error) {
	contentType := header.Get("Content-Type")
	if contentType == "" {
		return "", nil, nil
	}
	mediaType, params, err = mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(supported, mediaType) {
		return "", nil, &MediaTypeError{fmt.Sprintf("Content-Type: %.100q is not supported; send %s", contentType, strings.Join(supported, " or ")), supported}
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return "", nil, &MediaTypeError{fmt.Sprintf("Content-Type: the charset %.100q is not supported; send UTF-8", charset), supported}
	}
	return mediaType, params, nil
}
