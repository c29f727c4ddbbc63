package slot

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// schedule reads a request with the given members in addition to the ids.
func schedule(t *testing.T, members string, zone *time.Location) (Schedule, error) {
	t.Helper()
	const id = "0198c4f2-7d1e-7c3a-9b5f-000000000001"
	object, err := schema.Parse([]byte(`{"locationId":"` + id + `","resourceId":"` + id + `","notes":"n",` + members + `}`))
	if err != nil {
		t.Fatal(err)
	}
	content, _, err := GenerateFields.Create(object, schema.Identity{})
	if err != nil {
		return Schedule{}, err
	}
	return ReadSchedule(content, zone)
}

func TestSlots(t *testing.T) {
	hours := func(from, to, zone string, minutes int, periods ...string) string {
		return fmt.Sprintf(`"from":%q,"to":%q,"timeZone":%q,"durationMinutes":%d,"openingHours":[%s]`, from, to, zone, minutes, strings.Join(periods, ","))
	}
	everyDay := func(opens, closes string) string {
		return `{"days":["` + strings.Join(weekdays, `","`) + `"],"opensAt":"` + opens + `","closesAt":"` + closes + `"}`
	}
	tests := map[string]struct {
		members string
		want    string
	}{
		"each day by the clocks of that day": {
			hours("2031-03-29", "2031-03-31", "Europe/Vienna", 60, everyDay("09:00", "10:30")),
			"2031-03-29T09:00:00+01:00 2031-03-30T09:00:00+02:00 2031-03-31T09:00:00+02:00",
		},
		"across the beginning of summer time": {
			hours("2031-03-30", "2031-03-30", "Europe/Vienna", 60, everyDay("01:00", "04:00")),
			"2031-03-30T01:00:00+01:00 2031-03-30T03:00:00+02:00",
		},
		"from a time that the clocks skip": {
			hours("2031-03-30", "2031-03-30", "Europe/Vienna", 30, everyDay("02:30", "04:00")),
			"2031-03-30T03:00:00+02:00 2031-03-30T03:30:00+02:00",
		},
		"until a time that the clocks skip": {
			hours("2031-03-30", "2031-03-30", "Europe/Vienna", 30, everyDay("01:00", "02:30")),
			"2031-03-30T01:00:00+01:00 2031-03-30T01:30:00+01:00",
		},
		"within a time that the clocks skip": {
			hours("2031-03-30", "2031-03-30", "Europe/Vienna", 5, everyDay("02:10", "02:50")), "",
		},
		"across the end of summer time": {
			hours("2031-10-26", "2031-10-26", "Europe/Vienna", 60, everyDay("01:00", "04:00")),
			"2031-10-26T01:00:00+02:00 2031-10-26T02:00:00+02:00 2031-10-26T02:00:00+01:00 2031-10-26T03:00:00+01:00",
		},
		"from a time that the clocks show twice": {
			hours("2031-10-26", "2031-10-26", "Europe/Vienna", 60, everyDay("02:30", "04:00")),
			"2031-10-26T02:30:00+02:00 2031-10-26T02:30:00+01:00",
		},
		"where midnight does not exist": {
			hours("2031-04-25", "2031-04-25", "Africa/Cairo", 60, everyDay("00:00", "03:00")),
			"2031-04-25T01:00:00+03:00 2031-04-25T02:00:00+03:00",
		},
		"where the clocks change by half an hour": {
			hours("2031-10-05", "2031-10-05", "Australia/Lord_Howe", 30, everyDay("01:30", "03:00")),
			"2031-10-05T01:30:00+10:30 2031-10-05T02:30:00+11:00",
		},
		"until midnight": {
			hours("2031-03-01", "2031-03-01", "Asia/Kathmandu", 60, everyDay("22:00", "24:00")),
			"2031-03-01T22:00:00+05:45 2031-03-01T23:00:00+05:45",
		},
		"with a rest that is too short": {
			hours("2031-03-01", "2031-03-01", "UTC", 25, everyDay("09:00", "10:00")), "2031-03-01T09:00:00Z 2031-03-01T09:25:00Z",
		},
		"on some days, in several periods": {
			hours("2031-03-03", "2031-03-09", "UTC", 60, `{"days":["friday","monday"],"opensAt":"14:00","closesAt":"15:00"}`, `{"days":["monday"],"opensAt":"09:00","closesAt":"10:00"}`),
			"2031-03-03T09:00:00Z 2031-03-03T14:00:00Z 2031-03-07T14:00:00Z",
		},
		"on no day of the range": {hours("2031-03-03", "2031-03-03", "UTC", 60, `{"days":["sunday"],"opensAt":"09:00","closesAt":"10:00"}`), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := schedule(t, test.members, nil)
			if err != nil {
				t.Fatal(err)
			}
			var starts []string
			for _, content := range s.Slots(100) {
				starts = append(starts, content.Text("startAt"))
				if slot := Read(content); slot.End.Sub(slot.Start) != s.duration || slot.Booked || !slot.Active || content.Text("notes") != "n" || Check(content) != nil {
					t.Errorf("got %v", content)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(starts, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlotsZone(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	for zone, want := range map[*time.Location]string{nil: "2031-07-01T09:00:00Z", vienna: "2031-07-01T09:00:00+02:00"} {
		s, err := schedule(t, `"from":"2031-07-01","to":"2031-12-31","durationMinutes":60,"openingHours":[{"days":["tuesday"],"opensAt":"09:00","closesAt":"12:00"}]`, zone)
		if err != nil {
			t.Fatal(err)
		}
		slots := s.Slots(7)
		if got := slots[0].Text("startAt"); got != want || len(slots) != 8 {
			t.Errorf("got %d slots from %s on, want 8 from %s on", len(slots), got, want)
		}
	}
}

func TestScheduleRejects(t *testing.T) {
	const dates, hours, minutes = `"from":"2031-03-01","to":"2031-03-02"`, `"openingHours":[{"days":["monday"],"opensAt":"09:00","closesAt":"10:00"}]`, `"durationMinutes":30`
	period := func(text string) string { return dates + "," + minutes + `,"openingHours":[` + text + `]` }
	for members, want := range map[string]string{
		dates + "," + hours:                                                 "/durationMinutes missing_field",
		dates + "," + hours + `,"durationMinutes":4`:                        "/durationMinutes out_of_range",
		minutes + "," + hours + `,"from":"2031-02-29","to":"1999-12-31"`:    "/from invalid_value /to out_of_range",
		minutes + "," + hours + `,"from":"2031-03-02","to":"2031-03-01"`:    "/to out_of_range",
		minutes + "," + hours + `,"from":"2031-03-02","to":"2032-03-02"`:    "/to out_of_range",
		dates + "," + hours + "," + minutes + `,"timeZone":"Mars/Base"`:     "/timeZone invalid_value",
		dates + "," + hours + "," + minutes + `,"timeZone":"Local"`:         "/timeZone invalid_value",
		dates + "," + hours + "," + minutes + `,"timeZone":"../etc/passwd"`: "/timeZone invalid_value",
		dates + "," + hours + "," + minutes + `,"isBooked":true`:            "/isBooked unknown_field",
		period(``):  "/openingHours out_of_range",
		period(`1`): "/openingHours/0 wrong_type",
		period(`{"days":[],"opensAt":"9:00","closesAt":"24:01"}`):                                                                            "/openingHours/0/days out_of_range /openingHours/0/opensAt invalid_value /openingHours/0/closesAt invalid_value",
		period(`{"days":["Mon"],"opensAt":"09:00"}`):                                                                                         "/openingHours/0/days/0 invalid_value /openingHours/0/closesAt missing_field",
		period(`{"days":["monday"],"opensAt":"09:00","closesAt":"09:00"}`):                                                                   "/openingHours/0/closesAt out_of_range",
		period(`{"days":["monday"],"opensAt":"22:00","closesAt":"02:00"}`):                                                                   "/openingHours/0/closesAt out_of_range",
		period(`{"days":["monday"],"opensAt":"09:00","closesAt":"12:00"},{"days":["sunday","monday"],"opensAt":"11:00","closesAt":"13:00"}`): "/openingHours/1 invalid_value",
		period(`{"days":["monday"],"opensAt":"09:00","closesAt":"12:00"},{"days":["monday"],"opensAt":"12:00","closesAt":"13:00"}`):          "",
	} {
		_, err := schedule(t, members, nil)
		var errs fielderror.Errors
		errors.As(err, &errs)
		var got []string
		for _, each := range errs {
			got = append(got, each.At+" "+each.Code)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" || err != nil && errs == nil {
			t.Errorf("%s: %v (-want +got):\n%s", members, err, diff)
		}
	}
}
