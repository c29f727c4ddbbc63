package kubernetes

import "testing"

func TestConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		asked, returned []string
		want            bool
	}{
		"the one asked for":                 {[]string{"oak"}, []string{"oak"}, true},
		"one of those asked for":            {[]string{"oak", "elm"}, []string{"elm"}, true},
		"another":                           {[]string{"oak"}, []string{"elm"}, false},
		"none, of an authenticator without": {[]string{"oak"}, nil, false},
		"nothing was asked":                 {nil, nil, true},
		"the API server's own":              {nil, []string{"https://kubernetes.default.svc"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := confirmed(test.asked, test.returned); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
