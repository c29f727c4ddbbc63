package main

import "testing"

func TestCommandName(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/kubectl-paddock": "kubectl paddock", "paddock": "paddock", "bin/paddock.exe": "paddock",
	} {
		if got := commandName(path); got != want {
			t.Errorf("commandName(%q) = %q, want %q", path, got, want)
		}
	}
}
