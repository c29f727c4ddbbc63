package fhir

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// fhirVersion is the value of the media type parameter fhirVersion for R4.
// R4 versioning.html#mt-version.
const fhirVersion = "4.0"

// negotiate chooses the dialect of the answer. _format goes before Accept.
// R4 http.html#parameters.
func negotiate(header http.Header, query url.Values) (*dialect, error) {
	accepted := acceptedDialect(header.Values("Accept"))
	format := query.Get("_format")
	switch formatName(format) {
	case "":
		if accepted == nil {
			return nil, &notAcceptableError{"Accept", strings.Join(header.Values("Accept"), ", ")}
		}
		return accepted, nil
	case "json": // either kind of JSON: Accept decides which
		if accepted == nil {
			return contractDialect, nil
		}
		return accepted, nil
	case contractDialect.mediaType, "text/json":
		return contractDialect, nil
	case fhirDialect.mediaType:
		return fhirDialect, nil
	default:
		return nil, &notAcceptableError{"_format", format}
	}
}

// formatName returns the media type or the short name in _format, in lower case and without
// parameters. A + that was not escaped has arrived as a space. It returns format itself where
// that names another release of FHIR.
func formatName(format string) string {
	kind, params, hasParams := strings.Cut(format, ";")
	kind = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(kind), " ", "+"))
	if !hasParams {
		return kind
	}
	_, given, err := mime.ParseMediaType(kind + ";" + params)
	if version, ok := given["fhirversion"]; err != nil || ok && version != fhirVersion {
		return format
	}
	return kind
}

// mediaRange is one item of an Accept header. RFC 9110 §12.5.1.
type mediaRange struct {
	kind    string
	quality float64
}

// acceptedDialect chooses by the quality that the client gives each dialect, nil
// when it takes neither. Of equals it takes the one that is listed first, and the
// contract's where neither is listed.
func acceptedDialect(accept []string) *dialect {
	ranges := parseAccept(strings.Join(accept, ","))
	if len(ranges) == 0 {
		return contractDialect
	}
	contract, contractAt := preference(ranges, contractDialect.mediaType)
	fhir, fhirAt := preference(ranges, fhirDialect.mediaType)
	switch {
	case contract == 0 && fhir == 0:
		return nil
	case fhir > contract, fhir == contract && fhirAt < contractAt:
		return fhirDialect
	default:
		return contractDialect
	}
}

// preference returns the quality of a media type, by the most specific range
// that covers it, and the position at which it is listed by name.
func preference(ranges []mediaRange, kind string) (quality float64, at int) {
	general, _, _ := strings.Cut(kind, "/")
	specificity, at := 0, len(ranges)
	for i, r := range ranges {
		s := 0
		switch r.kind {
		case kind:
			s, at = 3, min(at, i)
		case general + "/*":
			s = 2
		case "*/*":
			s = 1
		}
		if s > specificity {
			specificity, quality = s, r.quality
		}
	}
	return quality, at
}

// parseAccept reads an Accept header, passing over what it cannot read and what
// asks for another release of FHIR.
func parseAccept(header string) []mediaRange {
	var ranges []mediaRange
	for item := range strings.SplitSeq(header, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		kind, params, err := mime.ParseMediaType(item)
		if err != nil {
			kind = "" // an item that covers nothing
		}
		if version, ok := params["fhirversion"]; ok && version != fhirVersion {
			kind = ""
		}
		if kind == "text/json" {
			kind = contractDialect.mediaType
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		if err != nil || quality < 0 || quality > 1 {
			quality = 1
		}
		ranges = append(ranges, mediaRange{kind, quality})
	}
	return ranges
}

// bodyDialect is the dialect of a body by its Content-Type. Nothing said is the
// contract's.
func bodyDialect(contentType string) (*dialect, error) {
	if contentType == "" {
		return contractDialect, nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, &mediaTypeError{fmt.Sprintf("the Content-Type %s cannot be read", r4.Quote(contentType))}
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return nil, &mediaTypeError{fmt.Sprintf("the charset %s is not taken; FHIR's JSON is UTF-8", r4.Quote(charset))}
	}
	if version, ok := params["fhirversion"]; ok && version != fhirVersion {
		return nil, &mediaTypeError{fmt.Sprintf("the fhirVersion %s is not taken; this server speaks %s", r4.Quote(version), fhirVersion)}
	}
	switch kind {
	case contractDialect.mediaType, "text/json":
		return contractDialect, nil
	case fhirDialect.mediaType:
		return fhirDialect, nil
	default:
		return nil, &mediaTypeError{fmt.Sprintf("a body of the type %s is not taken; send %s or %s",
			r4.Quote(kind), contractDialect.mediaType, fhirDialect.mediaType)}
	}
}

// wantsPretty reads _pretty.
func wantsPretty(query url.Values) (bool, error) {
	switch value := query.Get("_pretty"); value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		problem := r4.Quote(value) + " is not a boolean; give true or false"
		return false, search.Errors{{Parameter: "_pretty", Problem: problem}}
	}
}
