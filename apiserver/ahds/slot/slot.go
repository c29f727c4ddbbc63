// Package slot defines availability slots: their fields, their searchable values, and the state
// transitions when a slot is booked, held, released or changed. It does not depend on HTTP or a
// storage engine.
package slot

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Type is the store type of slots.
const Type = "AvailabilitySlot"

// IDField is the name of a slot's id field. Contract 2.1.
const IDField = "availabilitySlotId"

const (
	// maxLength is the maximum time from startAt to endAt.
	maxLength = 31 * 24 * time.Hour
	// maxNotes is the maximum number of characters of notes.
	maxNotes = 10_000
	// maxWord is the maximum number of characters of codes and names.
	maxWord = 256
	// maxExtensions is the maximum size of extensions in bytes.
	maxExtensions = 16 << 10
)

// Fields are the fields of a slot. Contract 2.1.
var Fields = schema.Fields{
	{Name: "startAt", Check: schema.Instant(), Required: true},
	{Name: "endAt", Check: schema.Instant(), Required: true},
	{Name: "isActive", Check: schema.Boolean(), Default: "true"},
	{Name: "isBooked", Check: schema.Boolean(), Default: "false"},
	{Name: "locationId", Check: schema.UUID(), Required: true},
	{Name: "resourceId", Check: schema.UUID(), Required: true},
	{Name: "serviceType", Check: schema.Nested(schema.Fields{
		{Name: "code", Check: schema.Text(1, maxWord), Required: true},
		{Name: "system", Check: schema.URI(), Default: "null"},
		{Name: "display", Check: schema.Text(0, maxWord), Default: "null"},
	}), Default: "null"},
	{Name: "notes", Check: schema.Text(0, maxNotes), Default: `""`},
	{Name: "extensions", Check: schema.AnyObject(maxExtensions), Default: "{}"},
	{Name: "heldUntil", Check: schema.Instant(), Served: true},
	{Name: "createdAt", Check: schema.Instant(), Served: true},
	{Name: "updatedAt", Check: schema.Instant(), Served: true},
}

// Slot is the part of a slot's content on which changes of its state depend.
type Slot struct {
	Start, End     time.Time
	Active, Booked bool
	// Resource and Location are resourceId and locationId in lower case.
	Resource, Location string
}

// Read returns the Slot of a content that Fields has validated.
func Read(content schema.Content) Slot {
	return Slot{
		Start: content.Time("startAt"), End: content.Time("endAt"),
		Active: content.Bool("isActive"), Booked: content.Bool("isBooked"),
		Resource: strings.ToLower(content.Text("resourceId")), Location: strings.ToLower(content.Text("locationId")),
	}
}

// Check returns an error if endAt is not later than startAt, or if the slot is longer than
// maxLength. If startAt or endAt is invalid itself, Check returns no error.
func Check(content schema.Content) fielderror.Errors {
	slot := Read(content)
	at := string(jsontext.Pointer("").AppendToken("endAt"))
	switch {
	case slot.Start.IsZero() || slot.End.IsZero():
		return nil
	case !slot.End.After(slot.Start):
		return fielderror.Errors{{At: at, Code: fielderror.CodeOutOfRange, Detail: "endAt is not later than startAt; send a later endAt"}}
	case slot.End.Sub(slot.Start) > maxLength:
		return fielderror.Errors{{At: at, Code: fielderror.CodeOutOfRange, Detail: "the slot is longer than 31 days; send an earlier endAt"}}
	}
	return nil
}

// linePrefix is the prefix of the claim lines of slots. Each resource has a line.
const linePrefix = "slot/"

// Claim returns the claim of a slot on its resource's time. If expires is zero, the claim does not
// expire.
func (s Slot) Claim(expires time.Time) store.Claim {
	return store.Claim{Line: linePrefix + s.Resource, From: s.Start.UTC(), Until: s.End.UTC(), Expires: expires}
}

// IsClaim reports whether a claim is that of a slot on its resource's time.
func IsClaim(claim store.Claim) bool { return strings.HasPrefix(claim.Line, linePrefix) }
