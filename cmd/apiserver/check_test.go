package main

import (
	"io"
	"strings"
	"testing"
)

func TestCheckFlags(t *testing.T) {
	const site = "--check=https://fhir.example.org/site/1042/fhir"
	tests := map[string]struct {
		args []string
		// refusal is a part of the error. If it is empty, the flags are accepted.
		refusal string
	}{
		// The flags of a server are not required.
		"a site and a token":   {args: []string{site, "--check-token-file=token"}},
		"no token":             {args: []string{site}, refusal: "--check-token-file"},
		"no address":           {args: []string{"--check=fhir.example.org", "--check-token-file=token"}, refusal: "is not the URL"},
		"another scheme":       {args: []string{"--check=ftp://fhir.example.org", "--check-token-file=token"}, refusal: "is not the URL"},
		"a query":              {args: []string{site + "?_id=1", "--check-token-file=token"}, refusal: "is not the URL"},
		"no time":              {args: []string{site, "--check-token-file=token", "--check-timeout=0"}, refusal: "--check-timeout"},
		"a token and no check": {args: []string{"--check-token-file=token"}, refusal: "--public-url"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseOptions(test.args, io.Discard)
			if test.refusal == "" && err != nil {
				t.Fatalf("parseOptions: %v", err)
			}
			if test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Fatalf("parseOptions: got error %v, want one with %q", err, test.refusal)
			}
		})
	}
}
