package ahds

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	idempotencyHeader = "Idempotency-Key"
	// keyLife is how long a key is remembered.
	keyLife = 24 * time.Hour
	// maxKeys is how many keys of changes a record remembers.
	maxKeys = 8
	// keyLine begins the names of the lines that creations claim by their keys.
	keyLine = "Idempotency-Key "
	// poll is how often a record is looked for that another request is about to make.
	poll = 10 * time.Millisecond
)

// idempotencyKey is a key that a client gave a request, by which it can be repeated; the
// zero value is none. A creation claims its key, so that there is one record of it; a
// change is remembered in its record.
type idempotencyKey struct {
	// key tells it from those of other callers.
	key string
	// request tells what was asked.
	request string
}

// usedKey is a key that changed a record.
type usedKey struct {
	Key     string    `json:"key"`
	Request string    `json:"request"`
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
}

var keyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// idempotencyKey reads the header of the request.
func (r *request) idempotencyKey() (idempotencyKey, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return idempotencyKey{}, nil
	}
	if len(values) > 1 || !keyForm.MatchString(values[0]) {
		return idempotencyKey{}, fault.Faults{{
			In: fault.Header, At: idempotencyHeader, Code: fault.CodeInvalidHeader, Detail: "send one key of 1 to 255 printable ASCII characters without spaces, such as a UUID",
		}}
	}
	return idempotencyKey{key: digest([]byte(r.caller.Name), []byte(values[0]))}, nil
}

// of is the key of a change with a body.
func (i idempotencyKey) of(r *request, body []byte) idempotencyKey {
	if i.key != "" {
		i.request = digest([]byte(r.Method), []byte(strings.ToLower(r.URL.Path)), body)
	}
	return i
}

// claims are what a creation claims by its key.
func (i idempotencyKey) claims(now time.Time) []store.Claim {
	if i.key == "" {
		return nil
	}
	return []store.Claim{{Line: keyLine + i.key, Expires: now.Add(keyLife).UTC().Truncate(time.Millisecond)}}
}

func isKeyClaim(claim store.Claim) bool { return strings.HasPrefix(claim.Line, keyLine) }

// keyClaims are those of a record's claims that its creation made by a key, as long as
// they last.
func keyClaims(claims []store.Claim, now time.Time) []store.Claim {
	var kept []store.Claim
	for _, claim := range claims {
		if isKeyClaim(claim) && now.Before(claim.Expires) {
			kept = append(kept, claim)
		}
	}
	return kept
}

// usedIn looks the key up among those of a record. Error: *keyReusedError.
func (i idempotencyKey) usedIn(keys []usedKey) (version int64, used bool, err error) {
	at := slices.IndexFunc(keys, func(u usedKey) bool { return u.Key == i.key })
	switch {
	case at < 0:
		return 0, false, nil
	case keys[at].Request != i.request:
		return 0, false, &keyReusedError{}
	default:
		return keys[at].Version, true, nil
	}
}

// addTo adds the key of a change that makes a version, and forgets old ones.
func (i idempotencyKey) addTo(keys []usedKey, version int64, now time.Time) []usedKey {
	kept := slices.DeleteFunc(slices.Clone(keys), func(u usedKey) bool { return now.Sub(u.At) > keyLife })
	if i.key == "" {
		return kept
	}
	kept = append(kept, usedKey{Key: i.key, Request: i.request, Version: version, At: now.UTC().Truncate(time.Second)})
	return kept[max(0, len(kept)-maxKeys):]
}

// versionOf is the version that a repeated change made, or the newest where that is kept
// no longer.
func (h *handler) versionOf(r *request, rec store.Record, version int64, err error) (store.Record, error) {
	if err != nil || version == rec.Version {
		return rec, err
	}
	made, err := r.site.Store.GetVersion(r.Context(), rec.Key, version)
	if errors.Is(err, store.ErrNotFound) {
		return rec, nil
	}
	return made, err
}
