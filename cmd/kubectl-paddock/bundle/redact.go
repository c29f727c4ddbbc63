package bundle

import (
	"net/url"
	"regexp"
)

// redacted replaces what a bundle must not contain.
const redacted = "REDACTED"

// secrets match values that must not be in a bundle, wherever they are: signing secrets of webhooks,
// JSON Web Tokens, PEM blocks, and bearer tokens. They are an additional precaution: the parts of
// objects that usually have secrets or records are not collected.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`whs[ek][a-z]*_[A-Za-z0-9+/=_-]+`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----`),
	regexp.MustCompile(`(?i)\bbearer +[A-Za-z0-9._~+/-]+=*`),
}

// credentials matches the scheme, user and password of a URL. The group is what remains: the scheme.
var credentials = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@"']+@`)

// Redact returns a text with the values that look like secrets replaced by a placeholder.
func Redact(text string) string {
	for _, secret := range secrets {
		text = secret.ReplaceAllString(text, redacted)
	}
	return credentials.ReplaceAllString(text, "${1}"+redacted+"@")
}

// Origin returns the scheme and host of a URL, without the path and query, which often contain
// secrets of receivers. If address is not a URL with a host, it returns a placeholder.
func Origin(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return redacted
	}
	return parsed.Scheme + "://" + parsed.Host
}
