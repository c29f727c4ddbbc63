package access

import (
	"errors"
	"testing"
)

func TestBearerToken(t *testing.T) {
	for header, want := range map[string]struct{ token, code string }{
		"Bearer abc":    {token: "abc"},
		"bearer  abc":   {token: "abc"},
		"":              {code: ""},
		"Bearer":        {code: "invalid_request"},
		"Bearer ":       {code: "invalid_request"},
		"Bearer a b":    {code: "invalid_request"},
		"Basic dTpw":    {code: "invalid_request"},
		"Bearerabc":     {code: "invalid_request"},
		"\tBearer abc ": {code: "invalid_request"},
	} {
		token, err := BearerToken([]string{header})
		if want.token != "" {
			if err != nil || token != want.token {
				t.Errorf("%q: got %q, %v", header, token, err)
			}
			continue
		}
		var refused *TokenError
		if !errors.As(err, &refused) || refused.Code != want.code {
			t.Errorf("%q: got %v, want a TokenError with code %q", header, err, want.code)
		}
	}
}

func TestSeveralTokens(t *testing.T) {
	for code, headers := range map[string][]string{
		"":                nil,
		"invalid_request": {"Bearer abc", "Bearer def"},
	} {
		token, err := BearerToken(headers)
		var refused *TokenError
		if token != "" || !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%q: got %q, %v, want a TokenError with code %q", headers, token, err, code)
		}
	}
}

func TestChallenge(t *testing.T) {
	for want, err := range map[string]TokenError{
		`Bearer realm="paddock"`: {},
		`Bearer realm="paddock", error="invalid_token", error_description="the token has expired"`: {Code: "invalid_token", Description: "the token has expired"},
	} {
		if got := err.Challenge(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAcceptedAudience(t *testing.T) {
	site := Tenant{Namespace: "new", Name: "demo", FormerAudiences: " paddock.health/old/demo paddock.health/older/demo"}
	for audience, want := range map[string]string{
		"paddock.health/new/demo": "paddock.health/new/demo", "paddock.health/older/demo": "paddock.health/older/demo",
		"paddock.health/ol": "", "": "",
	} {
		if got := site.AcceptedAudience([]string{"x", audience}); got != want {
			t.Errorf("audience %q: accepted %q, expected %q", audience, got, want)
		}
	}
}
