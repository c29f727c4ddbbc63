package slot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// maxHold is the maximum of ttlSeconds, the duration of a hold. The default of ttlSeconds is 300.
const maxHold = time.Hour

// HoldFields are the fields of a request to hold a slot. TokenFields are the fields of a request to
// book or release a slot. All fields are optional.
var (
	HoldFields = schema.Fields{
		{Name: "ttlSeconds", Check: schema.Integer(1, int64(maxHold/time.Second)), Default: "300"},
		tokenField,
	}
	TokenFields = schema.Fields{tokenField}
	tokenField  = schema.Field{Name: "holdToken", Check: schema.Text(0, 256), Default: `""`}
)

// Tokens computes and verifies the tokens of the holds of one slot. A token is not stored. It is an
// HMAC of the hold's nonce.
type Tokens struct {
	// Keys are the secret keys. The first key signs, and all keys verify.
	Keys [][]byte
	// Slot is an identifier of the slot that is unique among the slots of all sites.
	Slot string
}

// Of returns the token of a hold.
func (t Tokens) Of(hold *Hold) string { return t.by(t.Keys[0], hold) }

func (t Tokens) by(key []byte, hold *Hold) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("hold\x00" + t.Slot + "\x00" + hold.Nonce))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// fit reports whether token is that of a hold.
func (t Tokens) fit(hold *Hold, token string) bool {
	return slices.ContainsFunc(t.Keys, func(key []byte) bool { return hmac.Equal([]byte(t.by(key, hold)), []byte(token)) })
}

// NewNonce returns the nonce of a new hold.
func NewNonce() string { return rand.Text() }

func (s State) hasEnded() error {
	return s.refused(CodeEnded, "holdToken is not the token of a current hold of this slot; hold the slot again if it is free")
}

// admit returns an error unless a client with the token, which may be empty, may hold or book the
// slot.
func (s State) admit(t Tokens, token string, now time.Time) error {
	switch slot := Read(s.Content); {
	case !slot.Active:
		return s.refused(CodeInactive, "the slot is not active; choose another slot")
	case slot.Booked:
		return s.refused(CodeBooked, alreadyBooked)
	case token != "" && (!s.held(now) || !t.fit(s.Hold, token)):
		return s.hasEnded()
	case token == "" && s.held(now):
		return s.isHeld()
	}
	return nil
}

// Take returns the state of the slot with a new hold whose Nonce is nonce. If asked has a
// holdToken, Take extends the hold of that token instead. In both cases the hold ends
// asked.ttlSeconds after now. asked has the HoldFields. Errors: *RefusedError.
func (s State) Take(t Tokens, asked schema.Content, nonce string, now time.Time) (State, error) {
	token := asked.Text("holdToken")
	if err := s.admit(t, token, now); err != nil {
		return State{}, err
	}
	if token != "" {
		nonce = s.Hold.Nonce
	}
	ttl := time.Duration(schema.Int(asked["ttlSeconds"])) * time.Second
	until := now.Add(ttl).UTC().Truncate(time.Millisecond)
	return State{ID: s.ID, Content: s.Content, Hold: &Hold{Nonce: nonce, Until: until}}, nil
}

// Book returns the state of the slot after a booking. The slot must be free, or held with
// asked.holdToken. asked has the TokenFields. Errors: *RefusedError.
func (s State) Book(t Tokens, asked schema.Content, now time.Time) (State, error) {
	if err := s.admit(t, asked.Text("holdToken"), now); err != nil {
		return State{}, err
	}
	return State{ID: s.ID, Content: s.booked(true)}, nil
}

// Release returns the state of the slot without the hold of asked.holdToken, or without its booking
// if asked has no token. If the slot is neither booked nor held, Release only removes a hold that has
// ended. asked has the TokenFields.
// Errors: *RefusedError.
func (s State) Release(t Tokens, asked schema.Content, now time.Time) (State, error) {
	token, booked := asked.Text("holdToken"), Read(s.Content).Booked
	switch {
	case token != "" && booked, token != "" && s.held(now) && !t.fit(s.Hold, token):
		return State{}, s.hasEnded()
	case token == "" && s.held(now) && !booked:
		return State{}, s.isHeld()
	case booked:
		return State{ID: s.ID, Content: s.booked(false)}, nil
	default:
		return State{ID: s.ID, Content: s.Content}, nil
	}
}

func (s State) booked(is bool) schema.Content {
	content := maps.Clone(s.Content)
	content["isBooked"] = jsontext.Value("false")
	if is {
		content["isBooked"] = jsontext.Value("true")
	}
	return content
}
