// Command listen forwards the deliveries of a site's webhook to a local port, so that a receiver can
// be developed on a machine that the site cannot reach.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/cmd/listen/relay"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "listen:", terminal.Safe(err.Error()))
		os.Exit(1)
	}
}

// The environment variables with the token and the secret that are used if --token-file and --secret
// are unset.
const (
	tokenVariable  = "PADDOCK_TOKEN" //nolint:gosec // a name
	secretVariable = "PADDOCK_LISTEN_SECRET"
)

const usage = `Forwards the deliveries of a site's webhook to a receiver on this machine, signed with --secret.
For each event it prints the time, type, subject and webhook-id, and the status and latency of the response.
The token needs the right to create webhooks/deliveries in the group paddock.health and, for a webhook
with the clearance "privileged", the verb privileged on all types of records.

  listen --site http://127.0.0.1:8080/site/demo --token-file .local/token --webhook ID --forward-to http://localhost:3000/hook

`

func run(args []string) error {
	flags := flag.NewFlagSet("listen", flag.ContinueOnError)
	site := flags.String("site", "", "`URL` of the site, such as https://paddock.example.org/site/demo. Required")
	tokenFile := flags.String("token-file", "", "`path` of the file with the bearer token for the site, read again for each connection; if unset, the token in $"+tokenVariable+" is used")
	webhook := flags.String("webhook", "", "`id` of the webhook whose deliveries are forwarded. Required")
	forwardTo := flags.String("forward-to", "", "`URL` of the receiver, such as http://localhost:3000/hook. Required")
	secret := flags.String("secret", "", "`secret` that signs the deliveries: whsec_ and 24 to 64 bytes in base64; if unset, the secret in $"+secretVariable+" is used, or else a new one, which is printed")
	last := flags.String("last-event-id", "", "`id` of the event after which to continue, as an earlier run printed it; if unset, only new events are forwarded")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: the command takes only flags", flags.Arg(0))
	case *webhook == "":
		return errors.New("--webhook is required; GET …/ahds/v1/webhook lists the webhooks of a site")
	}
	for name, address := range map[string]string{"site": *site, "forward-to": *forwardTo} {
		if parsed, err := url.Parse(address); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return fmt.Errorf("--%s: %q is not an http or https URL", name, address)
		}
	}
	given := cmp.Or(*secret, os.Getenv(secretVariable))
	signs := cmp.Or(given, signing.NewShared())
	key, err := signing.ParseKey(signs)
	if err != nil {
		return fmt.Errorf("--secret or $"+secretVariable+": %w", err)
	}
	if given == "" {
		fmt.Println("secret:", signs)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := relay.New(relay.Config{
		Stream: strings.TrimSuffix(*site, "/") + "/ahds/v1/webhook/" + url.PathEscape(*webhook) + "/delivery/stream",
		Token:  func() (string, error) { return readToken(*tokenFile) }, ForwardTo: *forwardTo, Key: key, LastEventID: *last, Out: os.Stdout,
	})
	err = r.Run(ctx)
	if id := r.LastEventID(); id != "" {
		fmt.Println("to continue here: --last-event-id", terminal.Safe(id))
	}
	return err
}

func readToken(file string) (string, error) {
	if file == "" {
		if token := os.Getenv(tokenVariable); token != "" {
			return token, nil
		}
		return "", errors.New("there is no token; set --token-file or $" + tokenVariable)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read --token-file: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}
