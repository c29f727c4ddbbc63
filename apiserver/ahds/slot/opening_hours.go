package slot

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

const (
	// maxHours is the maximum number of periods in openingHours: eight for each day of the week.
	maxHours = 56
	// maxDays is the maximum number of days from from to to, both included.
	maxDays = 366
	// minDuration and maxDuration bound durationMinutes.
	minDuration, maxDuration = 5, 24 * 60
	// firstYear and lastYear bound the years of generated slots. Before 2000, some zones have
	// offsets with seconds, which RFC 3339 cannot express.
	firstYear, lastYear = 2000, 9998
)

// weekdays are the names of days in openingHours, by time.Weekday.
var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// GenerateFields are the fields of a request for slots from opening hours. The fields that slots
// also have are copied to each slot.
var GenerateFields = append(schema.Fields{
	{Name: "timeZone", Check: schema.Check{Errors: checkZone, Schema: schema.JSON{"type": "string", "maxLength": maxWord, "examples": []string{"Europe/Vienna"}}}, Default: "null"},
	{Name: "from", Check: aDate, Required: true},
	{Name: "to", Check: aDate, Required: true},
	{Name: "openingHours", Check: items(maxHours, schema.Nested(periodFields)), Required: true},
	{Name: "durationMinutes", Check: schema.Integer(minDuration, maxDuration), Required: true},
}, copied()...)

// copied returns the fields of a slot that clients set, except its time and isBooked.
func copied() schema.Fields {
	return slices.DeleteFunc(slices.Clone(Fields), func(f schema.Field) bool {
		return f.Served || slices.Contains([]string{"startAt", "endAt", "isBooked"}, f.Name)
	})
}

var (
	aDate  = schema.Check{Errors: checkDate, Schema: schema.JSON{"type": "string", "format": "date"}}
	aClock = schema.Check{Errors: checkClock, Schema: schema.JSON{"type": "string", "pattern": clockForm.String()}}
)

var periodFields = schema.Fields{
	{Name: "days", Check: items(len(weekdays), schema.OneOf(weekdays...)), Required: true},
	{Name: "opensAt", Check: aClock, Required: true},
	{Name: "closesAt", Check: aClock, Required: true},
}

func refuse(at jsontext.Pointer, code, detail string) fielderror.Errors {
	return fielderror.Errors{{At: string(at), Code: code, Detail: detail}}
}

// checkZone accepts names of the IANA time zone database. Local would be the zone of the server.
func checkZone(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.Text(1, maxWord).Errors(at, value); errs != nil {
		return errs
	}
	name := schema.String(value)
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return refuse(at, fielderror.CodeInvalidValue, fielderror.Quote(name)+" is not a time zone; send a name of the IANA database, such as Europe/Vienna")
	}
	return nil
}

func checkDate(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.Text(1, maxWord).Errors(at, value); errs != nil {
		return errs
	}
	date, err := time.Parse(time.DateOnly, schema.String(value))
	switch {
	case err != nil:
		return refuse(at, fielderror.CodeInvalidValue, fielderror.Quote(schema.String(value))+" is not a date; send one such as 2031-03-24")
	case date.Year() < firstYear || date.Year() > lastYear:
		return refuse(at, fielderror.CodeOutOfRange, "the date is out of range; send one in the years "+strconv.Itoa(firstYear)+" to "+strconv.Itoa(lastYear))
	}
	return nil
}

// items returns a check for arrays of 1 to most items.
func items(most int, item schema.Check) schema.Check {
	return schema.Check{
		Schema: schema.JSON{"type": "array", "minItems": 1, "maxItems": most, "items": item.Schema},
		Errors: func(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
			return checkItems(at, value, most, item)
		},
	}
}

// checkItems returns the errors of a value that must be an array of 1 to most items, and those of
// its items.
func checkItems(at jsontext.Pointer, value jsontext.Value, most int, check schema.Check) fielderror.Errors {
	var items []json.RawMessage
	if value.Kind() != jsontext.KindBeginArray || json.Unmarshal(value, &items) != nil {
		return refuse(at, fielderror.CodeWrongType, "the value is not an array; send an array of 1 to "+strconv.Itoa(most)+" items")
	}
	if len(items) < 1 || len(items) > most {
		return refuse(at, fielderror.CodeOutOfRange, "the array has "+strconv.Itoa(len(items))+" items; send 1 to "+strconv.Itoa(most))
	}
	var errs fielderror.Errors
	for i, item := range items {
		errs = append(errs, check.Errors(at.AppendToken(strconv.Itoa(i)), jsontext.Value(item))...)
	}
	return errs
}

// clockForm matches a time of day to the minute, and 24:00, the end of the day.
var clockForm = regexp.MustCompile(`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`)

func checkClock(at jsontext.Pointer, value jsontext.Value) fielderror.Errors {
	if errs := schema.Text(0, maxWord).Errors(at, value); errs != nil {
		return errs
	}
	if text := schema.String(value); !clockForm.MatchString(text) {
		return refuse(at, fielderror.CodeInvalidValue, fielderror.Quote(text)+" is not a time of day; send one from 00:00 to 24:00, such as 09:30")
	}
	return nil
}

// Schedule is a request for slots from opening hours.
type Schedule struct {
	zone     *time.Location
	from, to time.Time // midnight UTC of the first and the last day
	hours    []period
	duration time.Duration
	content  schema.Content
}

// period is a period of opening hours. Its times are in minutes of the day.
type period struct {
	days          []time.Weekday
	opens, closes int
}

// ReadSchedule returns the schedule of a content that GenerateFields has validated. zone is the
// time zone of a content without timeZone; nil is UTC. Errors: fielderror.Errors.
func ReadSchedule(content schema.Content, zone *time.Location) (Schedule, error) {
	s := Schedule{zone: zone, duration: time.Duration(schema.Int(content["durationMinutes"])) * time.Minute, content: schema.Content{}}
	if zone == nil {
		s.zone = time.UTC
	}
	var err error
	if name := content.Text("timeZone"); name != "" {
		if s.zone, err = time.LoadLocation(name); err != nil {
			return Schedule{}, err
		}
	}
	for _, f := range copied() {
		s.content[f.Name] = content[f.Name]
	}
	s.content["isBooked"] = jsontext.Value("false")
	if s.from, err = time.Parse(time.DateOnly, content.Text("from")); err != nil {
		return Schedule{}, err
	}
	if s.to, err = time.Parse(time.DateOnly, content.Text("to")); err != nil {
		return Schedule{}, err
	}
	var sent []struct {
		Days              []string
		OpensAt, ClosesAt string
	}
	if err := json.Unmarshal(content["openingHours"], &sent); err != nil {
		return Schedule{}, err
	}
	for _, each := range sent {
		p := period{opens: minutes(each.OpensAt), closes: minutes(each.ClosesAt)}
		for _, day := range each.Days {
			p.days = append(p.days, time.Weekday(slices.Index(weekdays, day)))
		}
		s.hours = append(s.hours, p)
	}
	return s, s.check().Err()
}

// minutes returns the minute of the day of a text that checkClock has accepted.
func minutes(clock string) int {
	hour, minute, _ := strings.Cut(clock, ":")
	h, _ := strconv.Atoi(hour) // clockForm has excluded errors
	m, _ := strconv.Atoi(minute)
	return 60*h + m
}

// check returns the errors of combinations of fields.
func (s Schedule) check() fielderror.Errors {
	var errs fielderror.Errors
	switch days := int(s.to.Sub(s.from)/(24*time.Hour)) + 1; {
	case days < 1:
		errs = append(errs, refuse("/to", fielderror.CodeOutOfRange, "to is before from; send the date of from or a later date")...)
	case days > maxDays:
		errs = append(errs, refuse("/to", fielderror.CodeOutOfRange, "from and to include "+strconv.Itoa(days)+" days; send at most "+strconv.Itoa(maxDays))...)
	}
	for i, p := range s.hours {
		at := jsontext.Pointer("/openingHours/" + strconv.Itoa(i))
		if p.closes <= p.opens {
			errs = append(errs, refuse(at+"/closesAt", fielderror.CodeOutOfRange, "closesAt is not later than opensAt; for a night, send a period until 24:00 and one from 00:00 of the next day")...)
			continue
		}
		for j, other := range s.hours[:i] {
			if p.opens < other.closes && other.opens < p.closes && slices.ContainsFunc(p.days, func(d time.Weekday) bool { return slices.Contains(other.days, d) }) {
				errs = append(errs, refuse(at, fielderror.CodeInvalidValue, "the period overlaps /openingHours/"+strconv.Itoa(j)+" on the same day; send periods that do not overlap")...)
				break
			}
		}
	}
	return errs
}

// Slots returns the contents of the slots of the schedule, in the order of time. Within a period,
// the first slot starts when the period opens, and each later slot starts when the previous slot
// ends. The last slot ends no later than the period closes. A period in which the clocks change is
// shorter or longer by that change. Slots stops after most+1 slots, by which a caller recognizes a
// schedule with too many slots.
func (s Schedule) Slots(most int) []schema.Content {
	var slots []schema.Content
	hours := slices.Clone(s.hours)
	slices.SortStableFunc(hours, func(a, b period) int { return a.opens - b.opens })
	for day := s.from; !day.After(s.to); day = day.AddDate(0, 0, 1) {
		for _, p := range hours {
			if !slices.Contains(p.days, day.Weekday()) {
				continue
			}
			closes := clockAt(day, p.closes, s.zone)
			for start := clockAt(day, p.opens, s.zone); !start.Add(s.duration).After(closes); start = start.Add(s.duration) {
				slots = append(slots, s.slot(start))
				if len(slots) > most {
					return slots
				}
			}
		}
	}
	return slots
}

func (s Schedule) slot(start time.Time) schema.Content {
	content := schema.Content{}
	for name, value := range s.content {
		content[name] = value
	}
	content["startAt"] = jsontext.Value(strconv.Quote(start.In(s.zone).Format(time.RFC3339)))
	content["endAt"] = jsontext.Value(strconv.Quote(start.Add(s.duration).In(s.zone).Format(time.RFC3339)))
	return content
}

// clockAt returns the first instant at which the clocks of a zone show a minute of a day. If the
// clocks skip the minute, clockAt returns the instant of their change. day is midnight UTC of the
// day.
func clockAt(day time.Time, minute int, zone *time.Location) time.Time {
	shown := day.Add(time.Duration(minute) * time.Minute)
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// The offset is one of those that apply a day before and after.
	before, after := offset(shown.Add(-24*time.Hour)), offset(shown.Add(24*time.Hour))
	for _, o := range []time.Duration{max(before, after), min(before, after)} {
		if at := shown.Add(-o); offset(at) == o {
			return at
		}
	}
	change, _ := shown.Add(-before).In(zone).ZoneBounds()
	return change
}
