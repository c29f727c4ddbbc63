// Package slot knows availability slots: their fields, how lists find them, and what may
// become of one when it is booked, held, released, moved or changed. It knows neither
// HTTP nor storage engines.
package slot

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Type is the type of the records of slots.
const Type = "AvailabilitySlot"

// IDField is the field with the id of a slot. Contract 2.1.
const IDField = "availabilitySlotId"

const (
	// maxLength is how long a slot may be.
	maxLength = 31 * 24 * time.Hour
	// maxNotes is how many characters of notes a slot may have.
	maxNotes = 10_000
	// maxWord is how many characters codes and names may have.
	maxWord = 256
	// maxExtensions is how many bytes extensions may have.
	maxExtensions = 16 << 10
)

// Fields are those of a slot. Contract 2.1.
var Fields = document.Fields{
	{Name: "startAt", Check: document.Instant(), Required: true},
	{Name: "endAt", Check: document.Instant(), Required: true},
	{Name: "isActive", Check: document.Boolean(), Default: "true"},
	{Name: "isBooked", Check: document.Boolean(), Default: "false"},
	{Name: "locationId", Check: document.UUID(), Required: true},
	{Name: "resourceId", Check: document.UUID(), Required: true},
	{Name: "serviceType", Check: document.Nested(document.Fields{
		{Name: "code", Check: document.Text(1, maxWord), Required: true},
		{Name: "system", Check: document.URI(), Default: "null"},
		{Name: "display", Check: document.Text(0, maxWord), Default: "null"},
	}), Default: "null"},
	{Name: "notes", Check: document.Text(0, maxNotes), Default: `""`},
	{Name: "extensions", Check: document.AnyObject(maxExtensions), Default: "{}"},
	{Name: "heldUntil", Served: true},
	{Name: "createdAt", Served: true},
	{Name: "updatedAt", Served: true},
}

// Slot is what decisions need to know of a slot's content.
type Slot struct {
	Start, End     time.Time
	Active, Booked bool
	// Resource is in lower case.
	Resource string
}

// Read reads a content that Fields have taken.
func Read(content document.Content) Slot {
	return Slot{
		Start: content.Time("startAt"), End: content.Time("endAt"),
		Active: content.Bool("isActive"), Booked: content.Bool("isBooked"),
		Resource: strings.ToLower(content.Text("resourceId")),
	}
}

// Check finds what fields have wrong together. Fields that are wrong themselves are not
// judged.
func Check(content document.Content) fault.Faults {
	slot := Read(content)
	at := string(jsontext.Pointer("").AppendToken("endAt"))
	switch {
	case slot.Start.IsZero() || slot.End.IsZero():
		return nil
	case !slot.End.After(slot.Start):
		return fault.Faults{{At: at, Code: fault.CodeOutOfRange, Detail: "endAt is not later than startAt"}}
	case slot.End.Sub(slot.Start) > maxLength:
		return fault.Faults{{At: at, Code: fault.CodeOutOfRange, Detail: "the slot is longer than 31 days"}}
	}
	return nil
}

// linePrefix begins the names of the lines that slots take claims on.
const linePrefix = "slot/"

// Claim is the hold of a slot on its resource's time. It ends by itself at a time, unless
// that is zero.
func (s Slot) Claim(expires time.Time) store.Claim {
	return store.Claim{Line: linePrefix + s.Resource, From: s.Start.UTC(), Until: s.End.UTC(), Expires: expires}
}

// IsClaim reports whether a claim is one of a slot on its resource's time.
func IsClaim(claim store.Claim) bool { return strings.HasPrefix(claim.Line, linePrefix) }
