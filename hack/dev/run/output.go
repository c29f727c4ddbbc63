package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// outputs is the folder with the files url, token and kubeconfig of the demo. They exist only while
// the demo runs.
type outputs string

func (o outputs) path(name string) string { return filepath.Join(string(o), name) }

func (o outputs) remove() error {
	var errs []error
	for _, name := range []string{"url", "token", "kubeconfig"} {
		if err := os.Remove(o.path(name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o outputs) write(url, token, kubeconfig string) error {
	admin, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(o.path("kubeconfig"), admin, 0o600),
		o.writeToken(token),
		// This file is written last, because programs wait for it and then read the rest.
		os.WriteFile(o.path("url"), []byte(url+"\n"), 0o600),
	)
}

// renewToken writes a new token after half of the life of the last one, until ctx ends. After a
// failure, it prints the error and tries again a minute later.
func (o outputs) renewToken(ctx context.Context, renew func() (string, error)) {
	for next := tokenLife / 2; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		token, err := renew()
		if err == nil {
			err = o.writeToken(token)
		}
		next = tokenLife / 2
		if err != nil {
			fmt.Fprintln(os.Stderr, "run: renew the token:", err)
			next = time.Minute
		}
	}
}

// token returns the token that was written last, or an empty string if there is none.
func (o outputs) token() string {
	text, err := os.ReadFile(o.path("token"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// writeToken replaces the token's file in one step, so that no reader sees a part of it.
func (o outputs) writeToken(token string) error {
	next := o.path("token.next")
	return errors.Join(os.WriteFile(next, []byte(token+"\n"), 0o600), os.Rename(next, o.path("token")))
}

// shown returns a path relative to the working directory.
func shown(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(wd, path); err == nil {
			return relative
		}
	}
	return path
}

// printReady prints where the demo is and what to try.
func printReady(url, namespace, dir string, o options, took time.Duration) {
	token := "$(cat " + shown(filepath.Join(dir, "token")) + ")"
	fmt.Printf(`
Paddock is ready after %.0[1]f s

  site        %[2]s
  FHIR base   %[2]s/fhir
  reference   %[2]s/docs
  console     %[2]s/console
  token       %[3]s
  kubeconfig  %[4]s

Try these in another terminal:

  curl -H "Authorization: Bearer %[5]s" '%[2]s/fhir/patient?_count=3&_pretty=true'

  curl -H "Authorization: Bearer %[5]s" '%[2]s/ahds/v1/availability-slot?isBooked=true'

  curl -H "Authorization: Bearer %[5]s" -H 'Content-Type: application/json' -d '{"resourceType":"Patient","name":[{"text":"Rex"}]}' '%[2]s/fhir/patient?_pretty=true'

  KUBECONFIG=%[4]s %[6]s get patients -n %[7]s

`, took.Seconds(), url, shown(filepath.Join(dir, "token")), shown(filepath.Join(dir, "kubeconfig")), token,
		shown(filepath.Join(o.bin, "kubectl")), namespace)
	if o.Data == "clinic" {
		fmt.Printf(`Bookings and new staff are sent to a webhook, which appends them to a file:

  tail -f %s

docs/guides/tour.md shows more. `, shown(filepath.Join(dir, "received.ndjson")))
	}
	fmt.Println("Ctrl-C stops it; the data stays for the next run. The token is renewed.")
}
