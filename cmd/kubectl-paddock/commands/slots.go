package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // names of time zones must be known on every machine

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// daysOfWeek is the number of days of a table of slots.
const daysOfWeek = 7

func (a *app) slotsCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "slots SITE", Short: "Show the availability slots of a week",
		Long: `Shows the slots that start in a week, as a table with a column for each day. Times are in the time zone of the
Site. A cell is free, held, booked or inactive. The token needs the right to list availabilityslots of the group
ahds.paddock.health.

With -o json and yaml, slots have the fields of the AHDS API.`,
		Example: "  kubectl paddock slots demo -n demo --as-service-account editor --week 2031-03-03",
		Args:    arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	week := flags.String("week", "", "a day of the week, such as 2031-03-03; if unset, this week is shown. A week begins on Monday")
	resource := flags.String("resource", "", "show only the slots of the resource with this id")
	location := flags.String("location", "", "show only the slots at the location with this id")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		if *week != "" {
			if _, err := time.Parse(time.DateOnly, *week); err != nil {
				return usagef(command, "--week: %q is not a date, such as 2031-03-03", *week)
			}
		}
		opened, err := a.open(command.Context(), site, args[0])
		if err != nil {
			return err
		}
		zone, err := time.LoadLocation(opened.object.Spec.TimeZone)
		if err != nil {
			return fmt.Errorf("find the time zone of the Site: %w", err)
		}
		day := a.now().In(zone)
		if *week != "" {
			// The format has been checked above.
			day, _ = time.ParseInLocation(time.DateOnly, *week, zone)
		}
		monday := mondayOf(day)
		query := url.Values{
			"startAtFrom": {monday.Format(time.RFC3339)}, "startAtTo": {monday.AddDate(0, 0, daysOfWeek).Format(time.RFC3339)},
			"sortBy": {"startAt"},
		}
		if *resource != "" {
			query.Set("resourceId", *resource)
		}
		if *location != "" {
			query.Set("locationId", *location)
		}
		found, err := siteapi.List[json.RawMessage](command.Context(), opened.api, "availability-slot", query)
		if err != nil {
			return err
		}
		slots, err := decodeSlots(found)
		if err != nil {
			return err
		}
		if len(slots) == 0 && p.Format == output.TableFormat {
			a.say("There are no slots in the week of %s.", monday.Format(time.DateOnly))
			return nil
		}
		return p.Print(map[string]any{"items": found}, weekTable(slots, monday, a.now()))
	}
	return command
}

// mondayOf returns the midnight at which the week of a day begins, in the day's time zone.
func mondayOf(day time.Time) time.Time {
	since := (int(day.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
	return time.Date(day.Year(), day.Month(), day.Day()-since, 0, 0, 0, 0, day.Location())
}

// slot is what the table shows of an availability slot.
type slot struct {
	StartAt, EndAt     time.Time
	ResourceID         string
	IsActive, IsBooked bool
	HeldUntil          *time.Time
}

func decodeSlots(found []json.RawMessage) ([]slot, error) {
	slots := make([]slot, len(found))
	for i := range found {
		if err := json.Unmarshal(found[i], &slots[i]); err != nil {
			return nil, fmt.Errorf("decode a slot of the response: %w", err)
		}
	}
	return slots, nil
}

// state returns the state of a slot in a word.
func (s slot) state(now time.Time) string {
	switch {
	case !s.IsActive:
		return "inactive"
	case s.IsBooked:
		return "booked"
	case s.HeldUntil != nil && s.HeldUntil.After(now):
		return "held"
	default:
		return "free"
	}
}

// line identifies a row of the table: a resource and a time of day.
type line struct {
	resource, from, to string
}

// weekTable returns slots as a table with a row for each resource and time of day. Several slots in
// a cell are separated by commas.
func weekTable(slots []slot, monday, now time.Time) output.Table {
	zone := monday.Location()
	cells := map[line][]string{}
	for _, s := range slots {
		from, to := s.StartAt.In(zone), s.EndAt.In(zone)
		at := line{s.ResourceID, from.Format("15:04"), to.Format("15:04")}
		if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
			at.to = to.Format("2006-01-02 15:04")
		}
		if cells[at] == nil {
			cells[at] = make([]string, daysOfWeek)
		}
		day := (int(from.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
		cells[at][day] = strings.TrimPrefix(cells[at][day]+","+s.state(now), ",")
	}
	table := output.Table{Columns: []string{"Resource", "Time"}}
	for day := range daysOfWeek {
		noon := time.Date(monday.Year(), monday.Month(), monday.Day()+day, 12, 0, 0, 0, zone) // the clocks can skip midnight
		table.Columns = append(table.Columns, noon.Format("Mon 02"))
	}
	lines := make([]line, 0, len(cells))
	for at := range cells {
		lines = append(lines, at)
	}
	slices.SortFunc(lines, func(x, y line) int {
		return cmp.Or(strings.Compare(x.resource, y.resource), strings.Compare(x.from, y.from), strings.Compare(x.to, y.to))
	})
	for _, at := range lines {
		row := output.Row{Cells: []string{at.resource, at.from + "-" + at.to}}
		for _, cell := range cells[at] {
			row.Cells = append(row.Cells, cmp.Or(cell, "-"))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}
