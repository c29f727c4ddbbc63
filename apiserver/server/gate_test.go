package server

import (
	"strings"
	"testing"
)

func TestReasonIn(t *testing.T) {
	for name, test := range map[string]struct {
		values  []string
		want    string
		problem string
	}{
		"none":               {},
		"trimmed":            {values: []string{" bleeding\t"}, want: "bleeding"},
		"UTF-8":              {values: []string{"für Rex"}, want: "für Rex"},
		"another encoding":   {values: []string{"f\xfcr Rex"}, want: "f?r Rex"},
		"empty":              {values: []string{" "}, problem: "is empty"},
		"two":                {values: []string{"a", "b"}, problem: "more than once"},
		"too long":           {values: []string{strings.Repeat("x", maxReason+1)}, problem: "has 513 bytes"},
		"too long in bytes":  {values: []string{strings.Repeat("ü", maxReason/2+1)}, problem: "has 514 bytes"},
		"control characters": {values: []string{"a\x01b"}, problem: "control characters"},
	} {
		got, err := reasonIn(test.values)
		if got != test.want || (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got %q, error %v, want %q, an error with %q", name, got, err, test.want, test.problem)
		}
	}
}
