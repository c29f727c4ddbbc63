package commands

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

func (a *app) webhooksCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "webhooks", Short: "Show webhooks and their deliveries, and send events again",
		Long: `Shows webhooks and their deliveries, and sends events again. WEBHOOK is the name of a Webhook object or the id
that the webhook has in the AHDS API.`,
		Args: unknownCommand,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(a.webhookListCommand(), a.webhookTestCommand(), a.webhookTailCommand(), a.webhookRedeliverCommand(), a.webhookReplayCommand(), a.webhookListenCommand())
	return command
}

// webhookID returns the id that a webhook has in the AHDS API. A webhook is given by that id or by
// the name of its object.
func webhookID(site *v1alpha1.Site, webhook string) string {
	if id, err := uuid.Parse(webhook); err == nil {
		return id.String()
	}
	return v1alpha1.ResourceID(webhookResource.Resource, site.Namespace, webhook)
}

// webhookState is what the command list shows of a webhook.
type webhookState struct {
	Name      string             `json:"name"`
	ID        string             `json:"id"`
	EventType v1alpha1.EventType `json:"eventType"`
	URL       string             `json:"url"`
	// State is Active, Inactive, TypeDisabled, NotAccepted or another reason of the condition Active,
	// Disabled if the server disabled the webhook, Failing if its last attempt failed, or Pending if the
	// webhook has no condition Active yet.
	State        string       `json:"state"`
	Message      string       `json:"message,omitempty"`
	Pending      *int64       `json:"pending,omitempty"`
	LastSuccess  *metav1.Time `json:"lastSuccess,omitempty"`
	FailingSince *metav1.Time `json:"failingSince,omitempty"`
}

func (a *app) webhookListCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "list SITE", Short: "Show the webhooks of a Site",
		Long:    "Shows the Webhook objects of a Site. The user needs the right to list webhooks of the group paddock.health. A token for the Site is not needed.",
		Example: "  kubectl paddock webhooks list demo -n demo",
		Args:    arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		site, err := a.site(command.Context(), c, args[0])
		if err != nil {
			return err
		}
		hooks, err := c.webhooks(command.Context(), site.Namespace)
		if err != nil {
			return err
		}
		states := make([]webhookState, len(hooks))
		for i := range hooks {
			states[i] = webhookStateOf(&hooks[i])
		}
		if len(states) == 0 && p.Format == output.TableFormat {
			a.say("There are no webhooks.")
			return nil
		}
		return p.Print(map[string]any{"items": states}, webhookTable(states))
	}
	return command
}

func webhookStateOf(hook *v1alpha1.Webhook) webhookState {
	state := webhookState{
		Name: hook.Name, ID: v1alpha1.ResourceID(webhookResource.Resource, hook.Namespace, hook.Name), EventType: hook.Spec.EventType,
		URL: hook.Spec.URL, State: "Pending", Pending: hook.Status.Pending, LastSuccess: hook.Status.LastSuccess, FailingSince: hook.Status.FailingSince,
	}
	active := meta.FindStatusCondition(hook.Status.Conditions, "Active")
	switch {
	case hook.IsDisabled():
		disabled := meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled)
		state.State, state.Message = "Disabled", disabled.Message
	case active == nil:
	case active.Status != metav1.ConditionTrue:
		state.State, state.Message = active.Reason, active.Message
	case hook.Status.FailingSince != nil:
		state.State = "Failing"
	default:
		state.State = "Active"
	}
	return state
}

func webhookTable(states []webhookState) output.Table {
	table := output.Table{Columns: []string{"Name", "ID", "Event type", "URL", "State", "Pending", "Last success", "Failing since"}}
	for _, state := range states {
		pending := "?"
		if state.Pending != nil {
			pending = strconv.FormatInt(*state.Pending, 10)
		}
		row := output.Row{Cells: []string{state.Name, state.ID, string(state.EventType), state.URL, state.State, pending, stamp(state.LastSuccess), stamp(state.FailingSince)}}
		switch state.State {
		case "Active", "Inactive", "Pending":
		case "Failing":
			row.Level = output.Warning
		default:
			row.Level = output.Failure
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func stamp(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func (a *app) webhookTestCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "test SITE WEBHOOK", Short: "Send a test event to a webhook",
		Long: `Sends an event with example data to a webhook and waits for the first attempt. The command fails if the receiver
does not accept the event. The token needs the right to create and get webhooks/deliveries of the group paddock.health.`,
		Example: "  kubectl paddock webhooks test demo partner -n demo --as-service-account editor",
		Args:    arguments("SITE", "WEBHOOK"), ValidArgsFunction: a.completeWebhooks,
	}
	wait := command.Flags().Duration("wait", 30*time.Second, "how long to wait for the first attempt; 0 does not wait")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *wait < 0 {
			return usagef(command, "--wait: %s is negative; give a duration such as 30s, or 0", *wait)
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		hook := webhookID(opened.object, args[1])
		var sent delivery
		if err := opened.api.AHDS(command.Context(), http.MethodPost, "webhook/"+hook+"/test", nil, struct{}{}, &sent); err != nil {
			return err
		}
		sent.WebhookID, sent.Status = hook, "pending"
		if *wait > 0 {
			if sent, err = opened.awaitAttempt(command.Context(), sent, *wait); err != nil {
				return err
			}
		}
		if err := p.Print(sent, deliveryTable([]delivery{sent})); err != nil {
			return err
		}
		return sent.failure(*wait)
	}
	return command
}

func (a *app) webhookRedeliverCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "redeliver SITE DELIVERY", Short: "Send a delivery again",
		Long:    "Sends a delivery again, with the same body and the same webhook-id. The token needs the right to create webhooks/deliveries of the group paddock.health.",
		Example: "  kubectl paddock webhooks redeliver demo 0198c4f2-7d1e-7c3a-9b5f-0a1b2c3d4e5f -n demo --as-service-account editor",
		Args:    arguments("SITE", "DELIVERY"), ValidArgsFunction: a.completeSites,
	}
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		id, err := uuid.Parse(args[1])
		if err != nil {
			return usagef(command, "DELIVERY: %q is not the id of a delivery, a UUID; `%s webhooks tail` shows ids", args[1], a.Name)
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		var sent delivery
		if err := opened.api.AHDS(command.Context(), http.MethodPost, "delivery/"+id.String()+"/redeliver", nil, struct{}{}, &sent); err != nil {
			return err
		}
		return p.Print(sent, deliveryTable([]delivery{sent}))
	}
	return command
}

func (a *app) webhookReplayCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "replay SITE WEBHOOK --from TIME", Short: "Send the deliveries of a range of time again",
		Long: `Sends again the deliveries to a webhook that were accepted at or after --from and before --to. Deliveries whose content
the site no longer stores are skipped. The token needs the right to create webhooks/deliveries of the group
paddock.health.`,
		Example: "  kubectl paddock webhooks replay demo partner -n demo --as-service-account editor --from 2031-03-01T00:00:00Z",
		Args:    arguments("SITE", "WEBHOOK"), ValidArgsFunction: a.completeWebhooks,
	}
	flags := command.Flags()
	from := flags.String("from", "", "send deliveries again that were accepted at this time or later, in RFC 3339. Required")
	to := flags.String("to", "", "send only deliveries again that were accepted before this time, in RFC 3339, which must be later than --from; if unset, deliveries until now")
	status := flags.StringSlice("status", []string{"failed", "undelivered"}, "statuses of deliveries to send again: delivered, failed, undelivered")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *from == "" {
			return usagef(command, "--from is required: a time in RFC 3339, such as 2031-03-01T08:30:00Z")
		}
		begin, err := parseTime(command, "from", *from)
		if err != nil {
			return err
		}
		request := map[string]any{"from": *from, "status": *status}
		if *to != "" {
			end, err := parseTime(command, "to", *to)
			if err != nil {
				return err
			}
			if !end.After(begin) {
				return usagef(command, "--to: %s is not after --from", *to)
			}
			request["to"] = *to
		}
		for _, each := range *status {
			if each != "delivered" && each != "failed" && each != "undelivered" {
				return usagef(command, "--status: %q is not one of delivered, failed, undelivered", each)
			}
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		var replayed struct {
			Count   int64 `json:"count"`
			Skipped int64 `json:"skipped"`
		}
		if err := opened.api.AHDS(command.Context(), http.MethodPost, "webhook/"+webhookID(opened.object, args[1])+"/replay", nil, request, &replayed); err != nil {
			return err
		}
		return p.Print(replayed, output.Table{
			Columns: []string{"Deliveries sent again", "Skipped"},
			Rows:    []output.Row{{Cells: []string{strconv.FormatInt(replayed.Count, 10), strconv.FormatInt(replayed.Skipped, 10)}}},
		})
	}
	return command
}

// awaitAttempt returns a delivery after its first attempt, or in the state that it has after wait. A
// response 404 is an error only after wait, because the site adds a delivery to the log later than it
// accepts the event.
func (s *openSite) awaitAttempt(ctx context.Context, sent delivery, wait time.Duration) (delivery, error) {
	deadline := time.Now().Add(wait)
	path := "webhook/" + url.PathEscape(sent.WebhookID) + "/delivery/" + url.PathEscape(sent.DeliveryID)
	for {
		found := sent
		err := s.api.AHDS(ctx, http.MethodGet, path, nil, nil, &found)
		var answered *siteapi.Error
		if errors.As(err, &answered) && answered.Status == http.StatusNotFound && time.Now().Before(deadline) {
			err = nil
		}
		if err != nil {
			return sent, err
		}
		if found.Status != "pending" || len(found.Attempts) > 0 || !time.Now().Before(deadline) {
			return found, nil
		}
		sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
	}
}

// streamURL returns the address of the stream of deliveries of a webhook.
func (s *openSite) streamURL(webhook string) string {
	return strings.TrimSuffix(s.base, "/") + "/ahds/v1/webhook/" + url.PathEscape(webhookID(s.object, webhook)) + "/delivery/stream"
}
