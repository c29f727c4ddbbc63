package fhir

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

// fhirVersion is the value of the media type parameter fhirVersion for R4.
// R4 versioning.html#mt-version.
const fhirVersion = "4.0"

// negotiate chooses the dialect of the response. _format overrides Accept. R4 http.html#parameters.
// Errors: *web.NotAcceptableError.
func negotiate(header http.Header, query url.Values) (*dialect, error) {
	accepted := acceptedDialect(header)
	format := query.Get("_format")
	switch formatName(format) {
	case "":
		if accepted == nil {
			return nil, notAcceptable("Accept", strings.Join(header.Values("Accept"), ", "))
		}
		return accepted, nil
	case "json": // Accept decides between the two media types of JSON
		if accepted == nil {
			return contractDialect, nil
		}
		return accepted, nil
	case contractDialect.mediaType, "text/json":
		return contractDialect, nil
	case fhirDialect.mediaType:
		return fhirDialect, nil
	default:
		return nil, notAcceptable("_format", format)
	}
}

// formatName returns the media type or short name in _format, in lower case and without parameters.
// A + that the client did not escape arrives as a space and is restored. A format for another
// release of FHIR, or with invalid parameters, is returned unchanged, so that it matches no dialect.
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

func notAcceptable(in, value string) error {
	return &web.NotAcceptableError{In: in, Value: value, Supported: []string{contractDialect.mediaType, fhirDialect.mediaType}}
}

// acceptedDialect returns the dialect with the higher quality in Accept, or nil if neither is
// acceptable. If both have the same quality, the dialect that is listed first wins. If one item, such
// as */*, stands for both, or if there is no Accept, the contract's wins.
func acceptedDialect(header http.Header) *dialect {
	ranges := acceptedRanges(header)
	if len(ranges) == 0 {
		return contractDialect
	}
	contract, contractAt := web.Preference(ranges, contractDialect.mediaType)
	fhir, fhirAt := web.Preference(ranges, fhirDialect.mediaType)
	switch {
	case contract == 0 && fhir == 0:
		return nil
	case fhir > contract, fhir == contract && fhirAt < contractAt:
		return fhirDialect
	default:
		return contractDialect
	}
}

// acceptedRanges parses the Accept header. Items that name another release of FHIR match no media
// type. text/json becomes application/json.
func acceptedRanges(header http.Header) []web.MediaRange {
	ranges := web.ParseAccept(header)
	for i, each := range ranges {
		if version, ok := each.Params["fhirversion"]; ok && version != fhirVersion {
			ranges[i].Type = ""
		} else if each.Type == "text/json" {
			ranges[i].Type = contractDialect.mediaType
		}
	}
	return ranges
}

// bodyDialect returns the dialect of a body by its Content-Type. Without a Content-Type it is the
// contract's. Errors: *web.MediaTypeError.
func bodyDialect(header http.Header) (*dialect, error) {
	kind, params, err := web.ParseContentType(header, contractDialect.mediaType, fhirDialect.mediaType, "text/json")
	if err != nil {
		return nil, err
	}
	if version, ok := params["fhirversion"]; ok && version != fhirVersion {
		return nil, &web.MediaTypeError{Problem: fmt.Sprintf("Content-Type: the fhirVersion %s is not supported; send %s", r4.Quote(version), fhirVersion)}
	}
	if kind == fhirDialect.mediaType {
		return fhirDialect, nil
	}
	return contractDialect, nil
}

// wantsPretty reports whether _pretty asks for indented JSON. Errors: search.Errors.
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
