package main

import (
	"os"
	"strings"
	"testing"
)

// TestGuide compares the receivers of docs/guides/webhooks.md with the programs that are tested.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/guides/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for language, path := range map[string]string{"go": "main.go", "js": "../node/receiver.mjs", "python": "../python/receiver.py"} {
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```"+language+"\n"+string(program)+"```\n") {
			t.Errorf("docs/guides/webhooks.md does not have %s as it is", path)
		}
	}
}
