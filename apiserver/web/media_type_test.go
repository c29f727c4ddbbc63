package web

import (
	"errors"
	"net/http"
	"testing"
)

func TestPreference(t *testing.T) {
	tests := map[string]struct {
		accept  []string
		quality float64
		at      int
	}{
		"none":                      {nil, 0, 0},
		"blank items":               {[]string{" , "}, 0, 0},
		"named":                     {[]string{"text/html, text/csv"}, 1, 1},
		"named, in two fields":      {[]string{"text/html", "TEXT/CSV;q=0.4"}, 0.4, 1},
		"any text":                  {[]string{"text/*;q=0.2"}, 0.2, 1},
		"anything":                  {[]string{"*/*;q=0.1"}, 0.1, 1},
		"the most specific range":   {[]string{"*/*, text/*;q=0.5, text/csv;q=0"}, 0, 2},
		"named twice":               {[]string{"text/csv;q=0.3, text/csv;q=0.7"}, 0.3, 0},
		"another type":              {[]string{"image/*, text/html"}, 0, 2},
		"an invalid item":           {[]string{";;, text/csv"}, 1, 1},
		"an invalid quality":        {[]string{"text/csv;q=x"}, 1, 0},
		"a quality out of range":    {[]string{"text/csv;q=7"}, 1, 0},
		"a quality not a number":    {[]string{"text/csv;q=NaN"}, 1, 0},
		"an invalid item by itself": {[]string{";;"}, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			quality, at := Preference(ParseAccept(http.Header{"Accept": test.accept}), "text/csv")
			if quality != test.quality || at != test.at {
				t.Errorf("got %v at %d, want %v at %d", quality, at, test.quality, test.at)
			}
		})
	}
}

func TestParseContentType(t *testing.T) {
	for contentType, want := range map[string]string{
		"":                                "",
		"application/json":                "application/json",
		"Application/JSON; charset=UTF-8": "application/json",
		"text/csv; a=b":                   "text/csv",
	} {
		if got, _, err := ParseContentType(http.Header{"Content-Type": {contentType}}, "application/json", "text/csv"); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", contentType, got, err, want)
		}
	}
	for _, contentType := range []string{"application/xml", "json", "/", "application/json; charset=latin1", "application/json;;a"} {
		var wrong *MediaTypeError
		if _, _, err := ParseContentType(http.Header{"Content-Type": {contentType}}, "application/json"); !errors.As(err, &wrong) || len(wrong.Supported) != 1 {
			t.Errorf("%q: got %v, want a *MediaTypeError", contentType, err)
		}
	}
}
