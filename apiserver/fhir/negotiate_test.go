package fhir

import (
	"net/http"
	"net/url"
	"testing"
)

func TestNegotiate(t *testing.T) {
	const (
		contract = "application/json"
		fhir     = "application/fhir+json"
		refused  = ""
	)
	tests := map[string]struct {
		accept []string
		query  string
		want   string
	}{
		"nothing":                         {nil, "", contract},
		"empty":                           {[]string{""}, "", contract},
		"contract":                        {[]string{"application/json"}, "", contract},
		"fhir":                            {[]string{"application/fhir+json"}, "", fhir},
		"fhir with parameters":            {[]string{"Application/FHIR+json; charset=utf-8; fhirVersion=4.0"}, "", fhir},
		"another release of FHIR":         {[]string{"application/fhir+json;fhirVersion=3.0"}, "", refused},
		"anything":                        {[]string{"*/*"}, "", contract},
		"any application":                 {[]string{"application/*"}, "", contract},
		"text/json":                       {[]string{"text/json"}, "", contract},
		"a browser":                       {[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, "", contract},
		"XML":                             {[]string{"application/fhir+xml"}, "", refused},
		"text":                            {[]string{"text/plain, image/*"}, "", refused},
		"HAPI's client":                   {[]string{"application/fhir+xml;q=1.0, application/fhir+json;q=1.0, application/xml+fhir;q=0.9, application/json+fhir;q=0.9"}, "", fhir},
		"the first of equals, FHIR":       {[]string{"application/fhir+json, application/json"}, "", fhir},
		"the first of equals, contract":   {[]string{"application/json", "application/fhir+json"}, "", contract},
		"by quality":                      {[]string{"application/json;q=0.5, application/fhir+json;q=0.6"}, "", fhir},
		"by quality, against the order":   {[]string{"application/fhir+json;q=0.5, application/json;q=0.6"}, "", contract},
		"a range above the listed":        {[]string{"application/fhir+json;q=0.5, */*"}, "", contract},
		"a range below the listed":        {[]string{"*/*;q=0.1, application/fhir+json"}, "", fhir},
		"everything but FHIR":             {[]string{"*/*, application/fhir+json;q=0"}, "", contract},
		"everything but the contract":     {[]string{"*/*, application/json;q=0"}, "", fhir},
		"nothing at all":                  {[]string{"*/*;q=0"}, "", refused},
		"unreadable":                      {[]string{";;"}, "", refused},
		"_format FHIR":                    {nil, "_format=application/fhir%2Bjson", fhir},
		"_format FHIR, + not escaped":     {[]string{"application/json"}, "_format=application/fhir+json", fhir},
		"_format contract before Accept":  {[]string{"application/fhir+json"}, "_format=application/json", contract},
		"_format json leaves it to FHIR":  {[]string{"application/fhir+json"}, "_format=json", fhir},
		"_format json saves a browser":    {[]string{"text/html"}, "_format=json", contract},
		"_format json alone":              {nil, "_format=json", contract},
		"_format text/json":               {nil, "_format=text/json", contract},
		"_format XML":                     {[]string{"application/json"}, "_format=xml", refused},
		"_format empty":                   {[]string{"application/fhir+json"}, "_format=", fhir},
		"_format given beside no JSON":    {[]string{"text/html"}, "_format=application/fhir%2Bjson", fhir},
		"_format turtle, whatever Accept": {[]string{"*/*"}, "_format=ttl", refused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := negotiate(http.Header{"Accept": test.accept}, query)
			switch {
			case test.want == refused:
				if p := problemOf(err); err == nil || p.status != http.StatusNotAcceptable {
					t.Errorf("got %v, %v", got, err)
				}
			case err != nil:
				t.Error(err)
			case got.mediaType != test.want:
				t.Errorf("got %s, want %s", got.mediaType, test.want)
			}
		})
	}
}

func TestBodyDialect(t *testing.T) {
	tests := map[string]*dialect{
		"":                                contractDialect,
		"application/json":                contractDialect,
		"application/json; charset=UTF-8": contractDialect,
		"text/json":                       contractDialect,
		"application/fhir+json":           fhirDialect,
		"application/fhir+json; fhirVersion=4.0; charset=utf-8": fhirDialect,
		"application/fhir+json; fhirVersion=5.0":                nil,
		"application/json; charset=latin1":                      nil,
		"application/fhir+xml":                                  nil,
		"application/x-www-form-urlencoded":                     nil,
		"application/json-patch+json":                           nil,
		"json":                                                  nil,
		"/":                                                     nil,
	}
	for contentType, want := range tests {
		got, err := bodyDialect(http.Header{"Content-Type": {contentType}})
		if got != want {
			t.Errorf("%q: got %v", contentType, got)
		}
		if want == nil && problemOf(err).status != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %v", contentType, err)
		}
	}
}
