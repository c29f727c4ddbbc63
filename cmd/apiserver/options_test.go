package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServe(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="), 0o600); err != nil {
		t.Fatal(err)
	}
	facade := []string{"--public-url=https://fhir.example.org", "--page-token-key-file=" + key}
	certificate := []string{"--aggregated-tls-cert-file=tls.crt", "--aggregated-tls-key-file=tls.key"}
	tests := map[string]struct {
		args [][]string
		want serveList
		// refusal is a part of the error.
		refusal string
	}{
		"the facade alone, by default":     {args: [][]string{facade}, want: serveList{serveFacade: true}},
		"the facade alone":                 {args: [][]string{facade, {"--serve=facade"}}, want: serveList{serveFacade: true}},
		"the aggregated API alone":         {args: [][]string{facade, certificate, {"--serve=aggregated"}}, want: serveList{serveAggregated: true}},
		"both":                             {args: [][]string{facade, certificate, {"--serve=facade,aggregated"}}, want: serveList{serveFacade: true, serveAggregated: true}},
		"the facade without an address":    {args: [][]string{certificate, {"--serve=aggregated,facade"}}, refusal: "--public-url"},
		"an address with a user":           {args: [][]string{facade, {"--public-url=https://user:pw@fhir.example.org"}}, refusal: "--public-url"},
		"an address with an empty user":    {args: [][]string{facade, {"--public-url=https://@fhir.example.org"}}, refusal: "--public-url"},
		"an address with a query":          {args: [][]string{facade, {"--public-url=https://fhir.example.org/?a=b"}}, refusal: "--public-url"},
		"an address with an empty query":   {args: [][]string{facade, {"--public-url=https://fhir.example.org?"}}, refusal: "--public-url"},
		"an address with a fragment":       {args: [][]string{facade, {"--public-url=https://fhir.example.org#a"}}, refusal: "--public-url"},
		"an address with # alone":          {args: [][]string{facade, {"--public-url=https://fhir.example.org#"}}, refusal: "--public-url"},
		"aggregated without an address":    {args: [][]string{certificate, {"--serve=aggregated"}}, refusal: "--public-url"},
		"the facade without keys":          {args: [][]string{{"--public-url=https://fhir.example.org"}}, refusal: "--page-token-key-file must be set"},
		"aggregated without a certificate": {args: [][]string{facade, {"--serve=facade,aggregated"}}, refusal: "--aggregated-tls-cert-file"},
		"delivery":                         {args: [][]string{{"--serve=delivery"}}, want: serveList{serveDelivery: true}},
		"delivery and an API":              {args: [][]string{facade, {"--serve=facade,delivery"}}, refusal: "delivery must be the only value"},
		"nothing":                          {args: [][]string{facade, {"--serve="}}, refusal: `"" is not one of`},
		"something else":                   {args: [][]string{facade, {"--serve=facade,ftp"}}, refusal: `"ftp" is not one of`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, more := range test.args {
				args = append(args, more...)
			}
			o, err := parseOptions(args, io.Discard)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Fatalf("parseOptions: got error %v, want one with %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, o.serve); diff != "" {
				t.Errorf("serve (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusedPublicURL shows that the error about an address with a password does not quote the password.
func TestRefusedPublicURL(t *testing.T) {
	for _, address := range []string{"https://user:sesame@fhir.example.org", "https://user:sesame@fhir.example.org:port", "https://fhir.example.org?key=sesame"} {
		_, err := parseOptions([]string{"--public-url=" + address}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "--public-url") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got error %v, want one with --public-url and without the address", address, err)
		}
	}
}
