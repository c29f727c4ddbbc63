package main

import (
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Setenv(tokenVariable, "")
	t.Setenv(secretVariable, "")
	good := []string{"--site=http://127.0.0.1:1/site/demo", "--webhook=0198c4f2-7d1e-7c3a-9b5f-00000000f001", "--forward-to=http://localhost:3000/hook"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"help":         {[]string{"-h"}, ""},
		"no webhook":   {good[:1], "--webhook is required"},
		"no receiver":  {good[:2], `--forward-to: "" is not an http or https URL`},
		"no scheme":    {append(good[:2:2], "--forward-to=localhost:3000"), `--forward-to: "localhost:3000" is not an http or https URL`},
		"an argument":  {append(good[:3:3], "more"), `unexpected argument "more"`},
		"a bad secret": {append(good[:3:3], "--secret=whsec_short"), "--secret or $PADDOCK_LISTEN_SECRET: a shared signing secret must have 24 to 64 bytes"},
		"no token":     {good, "set --token-file or $" + tokenVariable},
		"no file":      {append(good[:3:3], "--token-file=/nowhere/token"), "read --token-file: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(test.args)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
