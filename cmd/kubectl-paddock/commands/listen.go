package commands

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/cmd/listen/relay"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

// secretVariable is the environment variable with the signing secret if --secret is unset.
const secretVariable = "PADDOCK_LISTEN_SECRET"

func (a *app) webhookListenCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "listen SITE WEBHOOK --forward-to URL", Short: "Forward deliveries to a receiver on this machine",
		Long: `Forwards the deliveries of a webhook to a receiver on this machine, signed with --secret, until it is interrupted.
For each event it prints the time, type, subject and webhook-id, and the status and latency of the response. The token needs
the right to create webhooks/deliveries of the group paddock.health and, for a webhook with the clearance "privileged", the
verb privileged on all types of records.`,
		Example: "  kubectl paddock webhooks listen demo partner -n demo --as-service-account editor --forward-to http://localhost:3000/hook",
		Args:    arguments("SITE", "WEBHOOK"), ValidArgsFunction: a.completeWebhooks,
	}
	flags := command.Flags()
	forwardTo := flags.String("forward-to", "", "URL of the receiver, such as http://localhost:3000/hook. Required")
	secret := flags.String("secret", "", "secret that signs the deliveries: whsec_ and 24 to 64 bytes in base64; if unset, the secret in $"+secretVariable+" is used, or else a new one, which is printed")
	last := flags.String("last-event-id", "", "id of the event after which to continue, as an earlier run printed it; if unset, only new events are forwarded")
	site := addSiteFlags(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if *forwardTo == "" {
			return usagef(command, "--forward-to is required: the URL of the receiver")
		}
		if err := checkURL(command, "forward-to", *forwardTo); err != nil {
			return err
		}
		given := cmp.Or(*secret, os.Getenv(secretVariable))
		signs := cmp.Or(given, signing.NewShared())
		key, err := signing.ParseKey(signs)
		if err != nil {
			return usagef(command, "--secret or $%s: %v", secretVariable, err)
		}
		if site.caFile != "" {
			return usagef(command, "--server-ca-file is not supported by listen, which verifies the certificate of Paddock with the system's CA certificates; omit the flag")
		}
		ctx := command.Context()
		opened, err := a.open(ctx, site, args[0])
		if err != nil {
			return err
		}
		if given == "" {
			fmt.Fprintln(a.Streams.Out, "secret:", signs)
		}
		r := relay.New(relay.Config{
			Stream: opened.streamURL(args[1]), Token: func() (string, error) { return opened.token(context.WithoutCancel(ctx)) },
			ForwardTo: *forwardTo, Key: key, LastEventID: *last, Out: a.Streams.Out,
		})
		err = r.Run(ctx)
		if id := r.LastEventID(); id != "" {
			fmt.Fprintln(a.Streams.Out, "to continue here: --last-event-id", terminal.Safe(id))
		}
		return err
	}
	return command
}
