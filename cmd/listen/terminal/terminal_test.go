package terminal

import "testing"

func TestSafe(t *testing.T) {
	if got := Safe("a\x1b[31mb\u009bc\nd é"); got != "a [31mb c d é" {
		t.Errorf("Safe = %q", got)
	}
}
