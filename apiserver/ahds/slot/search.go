package slot

import (
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// The search parameters of slots.
const (
	paramActive   = "isActive"
	paramBooked   = "isBooked"
	paramLocation = "locationId"
	paramResource = "resourceId"
	paramService  = "serviceType"
	paramNotes    = "notes"
	// paramTime is the period from startAt to endAt. paramEnd is endAt alone.
	paramTime = "time"
	paramEnd  = "endAt"
)

// Facets are the search parameters that have few distinct values.
var Facets = []string{paramActive, paramBooked}

// Values returns the searchable values of a slot.
func Values(content schema.Content) []store.IndexValue {
	slot := Read(content)
	location := strings.ToLower(content.Text("locationId"))
	start, end := slot.Start.UnixMicro(), slot.End.UnixMicro()
	values := []store.IndexValue{
		{Param: paramActive, Value: store.Token{Code: strconv.FormatBool(slot.Active)}},
		{Param: paramBooked, Value: store.Token{Code: strconv.FormatBool(slot.Booked)}},
		{Param: paramLocation, Value: store.Token{Code: location}},
		{Param: paramResource, Value: store.Token{Code: slot.Resource}},
		// Sort orders compare texts.
		{Param: paramLocation, Value: store.Text{Folded: location, Original: location}},
		{Param: paramResource, Value: store.Text{Folded: slot.Resource, Original: slot.Resource}},
		{Param: paramTime, Value: store.Period{From: start, Until: end}},
		{Param: paramEnd, Value: store.Period{From: end, Until: end + 1}},
	}
	if code := content.Member("serviceType", "code"); code != "" {
		values = append(values, store.IndexValue{Param: paramService, Value: store.Token{System: content.Member("serviceType", "system"), Code: code}})
	}
	if notes := list.Fold(content.Text("notes")); notes != "" {
		values = append(values, store.IndexValue{Param: paramNotes, Value: store.Text{Folded: notes, Original: notes}})
	}
	return values
}

// Lists are the parameters of a list of slots. A range of time includes its start and excludes its
// end.
var Lists = list.Options[store.Condition]{
	SortBy:  []string{"startAt", "endAt", "createdAt", "updatedAt", "resourceId", "locationId"},
	Default: "startAt",
	Filters: []list.Filter[store.Condition]{
		{Name: "isActive", Parse: boolean(paramActive), Schema: list.BoolSchema},
		{Name: "isBooked", Parse: boolean(paramBooked), Schema: list.BoolSchema},
		{Name: "locationId", Parse: id(paramLocation), Schema: list.UUIDSchema},
		{Name: "resourceId", Parse: id(paramResource), Schema: list.UUIDSchema},
		{Name: "notes", Parse: notes, Schema: list.TextSchema},
		{Name: "serviceType", Parse: service, Schema: schema.JSON{"type": "string", "pattern": `^([^|]*\|)?.+$`}},
		{Name: "startAtFrom", Parse: instant(func(at int64) store.Condition { return starts(at, store.TheEnd) }), Schema: list.InstantSchema},
		{Name: "startAtTo", Parse: instant(func(at int64) store.Condition { return starts(store.TheBeginning, at-1) }), Schema: list.InstantSchema},
		{Name: "endAtFrom", Parse: instant(func(at int64) store.Condition { return ends(at, store.TheEnd) }), Schema: list.InstantSchema},
		{Name: "endAtTo", Parse: instant(func(at int64) store.Condition { return ends(store.TheBeginning, at-1) }), Schema: list.InstantSchema},
		{Name: "overlapsFrom", Parse: instant(func(at int64) store.Condition { return ends(at+1, store.TheEnd) }), Schema: list.InstantSchema},
		{Name: "overlapsTo", Parse: instant(func(at int64) store.Condition { return starts(store.TheBeginning, at-1) }), Schema: list.InstantSchema},
		{Name: "updatedFrom", Parse: updatedFrom, Schema: list.InstantSchema},
	},
}

// Sorts are the sort orders of a list of slots, by the value of sortBy. Without sortBy, Lists.Default
// applies.
var Sorts = map[string]store.Sort{
	"startAt":    {Field: store.SortPeriod, Param: paramTime},
	"endAt":      {Field: store.SortPeriod, Param: paramEnd},
	"createdAt":  {Field: store.SortCreated},
	"updatedAt":  {Field: store.SortUpdated},
	"resourceId": {Field: store.SortText, Param: paramResource},
	"locationId": {Field: store.SortText, Param: paramLocation},
}

type parse = func(value string) (store.Condition, string)

func boolean(param string) parse {
	return func(value string) (store.Condition, string) {
		is, problem := list.Bool(value)
		code := strconv.FormatBool(is)
		return store.TokenIs{Param: param, Code: &code}, problem
	}
}

func id(param string) parse {
	return func(value string) (store.Condition, string) {
		id, problem := list.UUID(value)
		return store.TokenIs{Param: param, Code: &id}, problem
	}
}

func notes(value string) (store.Condition, string) {
	if value == "" {
		return store.All{}, "" // every text contains the empty one
	}
	return store.TextIs{Param: paramNotes, Match: store.Contains, Text: list.Fold(value)}, ""
}

// service parses a code of any system, or system|code.
func service(value string) (store.Condition, string) {
	system, code, whole := strings.Cut(value, "|")
	if !whole {
		system, code = "", value
	}
	if code == "" {
		return nil, "the value has no code; send code or system|code"
	}
	is := store.TokenIs{Param: paramService, Code: &code}
	if whole {
		is.System = &system
	}
	return is, ""
}

func instant(condition func(at int64) store.Condition) parse {
	return func(value string) (store.Condition, string) {
		at, problem := list.Instant(value)
		if problem != "" {
			return nil, problem
		}
		return condition(at.UnixMicro()), ""
	}
}

func starts(least, most int64) store.Condition {
	return store.PeriodIs{Param: paramTime, From: store.Bounds{Least: least, Most: most}, Until: store.Unbounded}
}

// ends returns the condition on endAt. With a lower bound, it also bounds startAt, because indexes
// of periods are sorted by the start: no slot is longer than maxLength.
func ends(least, most int64) store.Condition {
	is := store.PeriodIs{Param: paramTime, From: store.Unbounded, Until: store.Bounds{Least: least, Most: most}}
	if least != store.TheBeginning {
		is.From.Least = least - maxLength.Microseconds()
	}
	return is
}

// Where joins the conditions of a list. It intersects those on the slot's time, so that an engine
// scans one range.
func Where(conditions []store.Condition) store.Condition {
	during := store.PeriodIs{Param: paramTime, From: store.Unbounded, Until: store.Unbounded}
	var joined store.All
	for _, condition := range conditions {
		is, ok := condition.(store.PeriodIs)
		if !ok {
			joined = append(joined, condition)
			continue
		}
		during.From, during.Until = during.From.Intersection(is.From), during.Until.Intersection(is.Until)
	}
	if during.From != store.Unbounded || during.Until != store.Unbounded {
		joined = append(joined, during)
	}
	return joined
}

func updatedFrom(value string) (store.Condition, string) {
	at, problem := list.Instant(value)
	return store.UpdatedIn{From: at}, problem
}

// Between returns the condition for the active slots of a resource that end after from and start
// before to.
func Between(resource string, from, to time.Time) store.Condition {
	active := strconv.FormatBool(true)
	return Where([]store.Condition{
		store.TokenIs{Param: paramResource, Code: &resource},
		store.TokenIs{Param: paramActive, Code: &active},
		ends(from.UnixMicro()+1, store.TheEnd), starts(store.TheBeginning, to.UnixMicro()-1),
	})
}
