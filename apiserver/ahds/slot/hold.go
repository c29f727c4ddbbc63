package slot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
)

// maxHold is how long a hold may last; five minutes are the default.
const maxHold = time.Hour

// The fields of what is asked of a slot by POST. All may be left out.
var (
	HoldFields = document.Fields{
		{Name: "ttlSeconds", Check: document.Integer(1, int64(maxHold/time.Second)), Default: "300"},
		tokenField,
	}
	TokenFields = document.Fields{tokenField}
	tokenField  = document.Field{Name: "holdToken", Check: document.Text(0, 256), Default: `""`}
)

// Tokens makes the tokens of the holds of one slot. Nothing that is stored tells them: they
// follow from the hold by a secret key.
type Tokens struct {
	Key []byte
	// Slot names the slot among those of all sites.
	Slot string
}

// Of is the token of a hold.
func (t Tokens) Of(hold *Hold) string {
	mac := hmac.New(sha256.New, t.Key)
	mac.Write([]byte("hold\x00" + t.Slot + "\x00" + hold.Nonce))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// fit reports whether a token is that of a hold.
func (t Tokens) fit(hold *Hold, token string) bool {
	return hmac.Equal([]byte(t.Of(hold)), []byte(token))
}

// NewNonce makes the nonce of a new hold.
func NewNonce() string { return rand.Text() }

func (s State) hasEnded() error {
	return s.refused(CodeEnded, "this hold has ended; hold the slot again, if it is still free")
}

// admit says whether somebody with a token, or with none, may have a slot that is not
// booked.
func (s State) admit(t Tokens, token string, now time.Time) error {
	switch slot := Read(s.Content); {
	case !slot.Active:
		return s.refused(CodeInactive, "the slot is not active")
	case slot.Booked:
		return s.refused(CodeBooked, "the slot is booked already")
	case token != "" && (!s.held(now) || !t.fit(s.Hold, token)):
		return s.hasEnded()
	case token == "" && s.held(now):
		return s.isHeld()
	}
	return nil
}

// Take holds a slot, or prolongs the hold that the token is of. It asks for what HoldFields
// have taken.
func (s State) Take(t Tokens, asked document.Content, nonce string, now time.Time) (State, error) {
	token := asked.Text("holdToken")
	if err := s.admit(t, token, now); err != nil {
		return State{}, err
	}
	if token != "" {
		nonce = s.Hold.Nonce
	}
	ttl := time.Duration(document.Int(asked["ttlSeconds"])) * time.Second
	until := now.Add(ttl).UTC().Truncate(time.Millisecond)
	return State{ID: s.ID, Content: s.Content, Hold: &Hold{Nonce: nonce, Until: until}}, nil
}

// Book books a slot: that of the hold that the token is of, or a free one.
func (s State) Book(t Tokens, asked document.Content, now time.Time) (State, error) {
	if err := s.admit(t, asked.Text("holdToken"), now); err != nil {
		return State{}, err
	}
	return State{ID: s.ID, Content: s.booked(true)}, nil
}

// Release gives up a hold, with its token, or a booking, without one. There is nothing to
// do where the slot is free.
func (s State) Release(t Tokens, asked document.Content, now time.Time) (State, error) {
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

func (s State) booked(is bool) document.Content {
	content := maps.Clone(s.Content)
	content["isBooked"] = jsontext.Value("false")
	if is {
		content["isBooked"] = jsontext.Value("true")
	}
	return content
}
