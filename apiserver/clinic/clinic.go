// Package clinic has the records of Oak Street Animal Hospital, an invented clinic that demo and
// sandbox sites contain: FHIR records, event groups, and slots of the days around today. It knows
// the paths of the APIs, but not how they are served.
package clinic

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed records eventgroups.json schedules.json
var files embed.FS

// types are the FHIR types of the records. A type follows those to which its records refer.
var types = []string{
	"Endpoint", "Organization", "Location", "Practitioner", "PractitionerRole", "HealthcareService",
	"OrganizationAffiliation", "DeviceDefinition", "Device", "DeviceMetric", "Patient", "RelatedPerson", "Person", "Group",
}

// Types returns the FHIR types of the demo clinic's records, which are all types that Paddock
// supports. A type comes after the types to which its records refer.
func Types() []string { return slices.Clone(types) }

// Record is one FHIR record of the demo clinic.
type Record struct {
	Type, ID string
	// JSON is the FHIR resource in one line of JSON.
	JSON []byte
}

// Send sends a request to a site. path is relative to the site's base URL: /fhir/… or /ahds/v1/….
// It returns the body of the response, or an error if the status is not 2xx.
type Send func(ctx context.Context, method, path string, body []byte) ([]byte, error)

// Records returns all FHIR records of the demo clinic. A record comes after the records to which it
// refers.
func Records() []Record {
	var all []Record
	for _, kind := range types {
		entries, err := files.ReadDir("records/" + kind)
		if err != nil {
			panic(err) // the files are part of the program
		}
		for _, entry := range entries {
			all = append(all, Record{
				Type: kind, ID: strings.TrimSuffix(entry.Name(), ".json"), JSON: compact(read(path.Join("records", kind, entry.Name()))),
			})
		}
	}
	return all
}

// Load writes the FHIR records and the event groups of the demo clinic to a site. It can be repeated:
// it overwrites FHIR records that were changed since, and leaves unchanged records and existing event
// groups as they are.
func Load(ctx context.Context, send Send) error {
	for _, record := range Records() {
		if _, err := send(ctx, http.MethodPut, "/fhir/"+record.Type+"/"+record.ID, record.JSON); err != nil {
			return fmt.Errorf("load %s/%s: %w", record.Type, record.ID, err)
		}
	}
	for _, group := range decode[[]json.RawMessage]("eventgroups.json") {
		if _, err := send(ctx, http.MethodPost, "/ahds/v1/eventgroup", group); err != nil {
			return fmt.Errorf("load an event group: %w", err)
		}
	}
	return nil
}

// The days of which the clinic has slots, counted from today.
const (
	firstDay = -3
	lastDay  = 4
)

// schedule is a request for the slots of one vet, without its dates, and the bookings of these slots.
type schedule struct {
	Request  map[string]json.RawMessage
	Bookings []booking
}

// booking is the booking of one slot: the one that begins at the time At of a day. The day is the one
// with the number OpenDay among the days that have slots, counted from 0.
type booking struct {
	OpenDay int    `json:"openDay"`
	At      string `json:"at"`
	Patient string `json:"patient"`
	Notes   string `json:"notes"`
}

// LoadSlots creates the slots of the demo clinic from three days before the day of now until four
// days after it, in the time zone zone, and books some of the slots. zone must be the time zone of
// the site. Slots that exist stay as they are.
func LoadSlots(ctx context.Context, send Send, now time.Time, zone *time.Location) error {
	today := now.In(zone)
	for _, s := range schedules() {
		s.Request["from"] = date(today.AddDate(0, 0, firstDay))
		s.Request["to"] = date(today.AddDate(0, 0, lastDay))
		body, err := json.Marshal(s.Request)
		if err != nil {
			return err
		}
		answer, err := send(ctx, http.MethodPost, "/ahds/v1/availability-slot/generate", body)
		if err != nil {
			return fmt.Errorf("generate slots: %w", err)
		}
		var made struct {
			Data []slot `json:"data"`
		}
		if err := json.Unmarshal(answer, &made); err != nil {
			return fmt.Errorf("parse the generated slots: %w", err)
		}
		if err := book(ctx, send, made.Data, s.Bookings); err != nil {
			return err
		}
	}
	return nil
}

type slot struct {
	ID      string `json:"availabilitySlotId"`
	StartAt string `json:"startAt"`
	Created bool   `json:"created"`
}

// book books slots that are new. A slot that existed before is left as it is, because it can have been
// created on an earlier day, with bookings of its own.
func book(ctx context.Context, send Send, slots []slot, bookings []booking) error {
	days := map[string]int{}
	for _, s := range slots {
		day, clock, _ := strings.Cut(s.StartAt, "T")
		if _, known := days[day]; !known {
			days[day] = len(days)
		}
		for _, b := range bookings {
			if !s.Created || b.OpenDay != days[day] || !strings.HasPrefix(clock, b.At) {
				continue
			}
			body, err := json.Marshal(map[string]any{
				"isBooked": true, "notes": b.Notes, "extensions": map[string]string{"patient": "Patient/" + b.Patient},
			})
			if err != nil {
				return err
			}
			if _, err := send(ctx, http.MethodPatch, "/ahds/v1/availability-slot/"+s.ID, body); err != nil {
				return fmt.Errorf("book a slot: %w", err)
			}
		}
	}
	return nil
}

func schedules() []schedule {
	var all []schedule
	for _, request := range decode[[]map[string]json.RawMessage]("schedules.json") {
		s := schedule{Request: request}
		if err := json.Unmarshal(request["bookings"], &s.Bookings); err != nil {
			panic(err)
		}
		delete(request, "bookings")
		all = append(all, s)
	}
	return all
}

func date(day time.Time) json.RawMessage { return json.RawMessage(day.Format(`"2006-01-02"`)) }

// decode reads a file of this package, which is valid.
func decode[T any](name string) T {
	var value T
	if err := json.Unmarshal(read(name), &value); err != nil {
		panic(err)
	}
	return value
}

// compact removes the line breaks of a file, because an export has a record on each line.
func compact(body []byte) []byte {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		panic(err)
	}
	return line.Bytes()
}

func read(name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return content
}
