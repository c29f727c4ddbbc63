package commands

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/sandbox"
)

func (a *app) resetCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "reset SITE", Short: "Reset a sandbox to the demo clinic",
		Long: `Deletes the records, slots, event groups and calendars of a Site whose spec.sandbox is true, and loads those of
Oak Street Animal Hospital, an invented clinic with the slots of the days around today. Webhooks and webhook events stay.

The token needs the rights to list and delete all kinds of records, and to create and update them, such as those of the
ClusterRole paddock-editor. Each request is in the audit log. If the command is interrupted, repeat it.`,
		Example: "  kubectl paddock reset demo -n demo --as-service-account editor",
		Args:    arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	site := addSiteFlags(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		if !opened.object.Spec.Sandbox {
			return fmt.Errorf("the Site %s/%s is not a sandbox: a reset deletes all of its records, so it needs spec.sandbox: true", opened.object.Namespace, opened.object.Name)
		}
		zone, err := time.LoadLocation(opened.object.Spec.TimeZone)
		if err != nil {
			return fmt.Errorf("find the time zone of the Site: %w", err)
		}
		result, err := sandbox.Reset(command.Context(), opened.api, a.now(), zone)
		if err != nil {
			return err
		}
		a.say("Deleted %d records, slots, event groups and calendars. Loaded %d records, and the slots of the days around today.", result.Deleted, result.Loaded)
		return nil
	}
	return command
}
