package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
	"github.com/paddock-health/paddock/cmd/listen/terminal"
)

const (
	// pollInterval is the delay between two requests for the state of deliveries.
	pollInterval = time.Second
	// lateness is how much later than its acceptedAt a delivery can appear in the log: the time limit
	// of a write.
	lateness = time.Minute
	// maxLines is the maximum of --lines, the pageSize of a list of deliveries.
	maxLines = 100
)

// delivery is an entry of the log of deliveries of the AHDS API.
type delivery struct {
	DeliveryID    string     `json:"deliveryId"`
	WebhookID     string     `json:"webhookId"`
	EventID       string     `json:"eventId"`
	EventType     string     `json:"eventType,omitempty"`
	Subject       string     `json:"subject,omitempty"`
	Status        string     `json:"status"`
	AcceptedAt    *time.Time `json:"acceptedAt,omitempty"`
	NextAttemptAt *time.Time `json:"nextAttemptAt,omitempty"`
	FinishedAt    *time.Time `json:"finishedAt,omitempty"`
	Attempts      []attempt  `json:"attempts,omitempty"`
}

type attempt struct {
	At        time.Time `json:"at"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	LatencyMs int64     `json:"latencyMs"`
	// Status is the status of the response, or 0 if there was none.
	Status   int    `json:"status,omitempty"`
	Response string `json:"response,omitempty"`
}

// outcome returns the result of the last attempt in a few words.
func (d delivery) outcome() string {
	if len(d.Attempts) == 0 {
		return "-"
	}
	last := d.Attempts[len(d.Attempts)-1]
	text := last.Reason
	if last.Status != 0 {
		text += " " + strconv.Itoa(last.Status)
	}
	return text + " " + strconv.FormatInt(last.LatencyMs, 10) + "ms"
}

// failure returns an error if the receiver has not accepted the delivery. wait is how long the
// caller waited for an attempt. If it is 0, failure returns nil.
func (d delivery) failure(wait time.Duration) error {
	switch {
	case d.Status == "delivered" || wait == 0:
		return nil
	case len(d.Attempts) == 0 && d.Status == "pending":
		return fmt.Errorf("delivery %s: there was no attempt within %s; `webhooks tail` shows later attempts", d.DeliveryID, wait)
	case len(d.Attempts) == 0:
		return fmt.Errorf("delivery %s is %s without an attempt; check that the Webhook is active and not disabled", d.DeliveryID, d.Status)
	default:
		last := d.Attempts[len(d.Attempts)-1]
		return fmt.Errorf("delivery %s: the receiver did not accept the event (%s): %s", d.DeliveryID, last.Reason, last.Message)
	}
}

func deliveryTable(deliveries []delivery) output.Table {
	table := output.Table{Columns: []string{"Delivery", "Event type", "Subject", "Accepted", "Status", "Attempts", "Last attempt"}}
	for _, d := range deliveries {
		row := output.Row{Cells: []string{d.DeliveryID, dash(d.EventType), dash(d.Subject), "-", d.Status, strconv.Itoa(len(d.Attempts)), d.outcome()}}
		if d.AcceptedAt != nil {
			row.Cells[3] = d.AcceptedAt.UTC().Format(time.RFC3339)
		}
		row.Level = d.level()
		table.Rows = append(table.Rows, row)
	}
	return table
}

func (d delivery) level() output.Level {
	switch {
	case d.Status == "failed" || d.Status == "undelivered":
		return output.Failure
	case d.Status == "pending" && len(d.Attempts) > 0:
		return output.Warning
	default:
		return output.Normal
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (a *app) webhookTailCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "tail SITE WEBHOOK", Short: "Show deliveries as they happen",
		Long: `Shows the last deliveries to a webhook, and then a line for each delivery that is accepted or attempted, until
the command is interrupted. The token needs the right to list webhooks/deliveries of the group paddock.health.

With -o json, each line is a delivery in JSON.`,
		Example: "  kubectl paddock webhooks tail demo partner -n demo --as-service-account editor --lines 20",
		Args:    arguments("SITE", "WEBHOOK"), ValidArgsFunction: a.completeWebhooks,
	}
	lines := command.Flags().Int("lines", 10, fmt.Sprintf("number of earlier deliveries to show, 0 to %d", maxLines))
	follow := command.Flags().Bool("follow", true, "keep running; false ends after the earlier deliveries")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		switch {
		case err != nil:
			return err
		case p.Format == output.YAMLFormat:
			return usagef(command, "--output: tail does not support yaml; use table or json")
		case *lines < 0 || *lines > maxLines:
			return usagef(command, "--lines: %d is not between 0 and %d", *lines, maxLines)
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		t := &tail{app: a, site: opened, path: "webhook/" + webhookID(opened.object, args[1]) + "/delivery", json: p.Format == output.JSONFormat, seen: map[string]string{}}
		if err := t.begin(command.Context(), *lines); err != nil || !*follow {
			return err
		}
		return t.run(command.Context())
	}
	return command
}

// tail prints the deliveries to a webhook as they happen.
type tail struct {
	*app
	site *openSite
	path string
	json bool
	// seen is the state that was printed of each delivery.
	seen map[string]string
	// from is the time of acceptance from which deliveries are listed. Pending deliveries that are older
	// than those that begin has read are not followed.
	from time.Time
}

// begin prints the last deliveries, oldest first. It marks older deliveries that list returns as seen, so
// that run does not print them. Errors: *siteapi.Error.
func (t *tail) begin(ctx context.Context, lines int) error {
	var page struct{ Data []delivery }
	query := url.Values{"page": {"0"}, "pageSize": {strconv.Itoa(max(lines, 1))}}
	if err := t.site.api.AHDS(ctx, http.MethodGet, t.path, query, nil, &page); err != nil {
		return err
	}
	if lines > 0 {
		if err := t.print(page.Data); err != nil {
			return err
		}
	}
	if t.advance(page.Data); t.from.IsZero() {
		t.from = t.now().Add(-lateness)
		return nil
	}
	found, err := t.list(ctx)
	if err != nil {
		return err
	}
	newest := *page.Data[0].AcceptedAt // it is not nil, because from is not zero
	for _, d := range found {
		if _, printed := t.seen[d.DeliveryID]; !printed && d.AcceptedAt != nil && !d.AcceptedAt.After(newest) {
			t.seen[d.DeliveryID] = d.state()
		}
	}
	return nil
}

// list returns the deliveries that were accepted since from, newest first. Errors: *siteapi.Error.
func (t *tail) list(ctx context.Context) ([]delivery, error) {
	return siteapi.List[delivery](ctx, t.site.api, t.path, url.Values{"from": {t.from.UTC().Format(time.RFC3339Nano)}})
}

// run prints changes until ctx is done, and then returns nil. It continues after failed requests,
// except if the site refuses them.
func (t *tail) run(ctx context.Context) error {
	failing := false
	for {
		sleep(ctx, pollInterval)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has ended the command
		}
		found, err := t.list(ctx)
		var refused *siteapi.Error
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has ended the command
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
			return err
		case err != nil:
			if !failing {
				t.say("The deliveries cannot be read, and the command will retry: %v", err)
			}
			failing = true
			continue
		}
		failing = false
		if err := t.print(found); err != nil {
			return err
		}
		t.advance(found)
	}
}

// advance moves from to the oldest pending delivery, or to lateness before the newest delivery if that is
// earlier. It never moves from back. It removes deliveries that were not found from seen.
func (t *tail) advance(found []delivery) {
	if len(found) == 0 || found[0].AcceptedAt == nil {
		return
	}
	from := found[0].AcceptedAt.Add(-lateness) // the newest comes first
	listed := map[string]bool{}
	for _, d := range found {
		listed[d.DeliveryID] = true
		if d.Status == "pending" && d.AcceptedAt != nil && d.AcceptedAt.Before(from) {
			from = *d.AcceptedAt
		}
	}
	if from.After(t.from) {
		t.from = from
	}
	for id := range t.seen {
		if !listed[id] {
			delete(t.seen, id)
		}
	}
}

// state returns what a line shows of a delivery. Another line follows when it changes.
func (d delivery) state() string {
	return d.Status + " " + strconv.Itoa(len(d.Attempts)) + " " + d.outcome()
}

// print prints the deliveries whose state has changed, oldest first.
func (t *tail) print(newestFirst []delivery) error {
	for _, d := range slices.Backward(newestFirst) {
		if t.seen[d.DeliveryID] == d.state() {
			continue
		}
		t.seen[d.DeliveryID] = d.state()
		if err := t.line(d); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) line(d delivery) error {
	if t.json {
		text, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("encode a delivery: %w", err)
		}
		_, err = fmt.Fprintf(t.Streams.Out, "%s\n", text)
		return err
	}
	accepted := "-"
	if d.AcceptedAt != nil {
		accepted = d.AcceptedAt.UTC().Format(time.RFC3339)
	}
	text := terminal.Safe(fmt.Sprintf("%s %s %s %s %s %s", accepted, d.DeliveryID, dash(d.EventType), dash(d.Subject), d.Status, d.outcome()))
	return output.Printer{Coloured: t.Coloured, Out: t.Streams.Out}.Line(text, d.level())
}
