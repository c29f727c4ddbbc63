package ahds

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	idempotencyHeader = "Idempotency-Key"
	// keyLife is how long the key of a create is remembered. The key of a change stays in its record
	// until the first change after keyLife, or until maxKeys later changes with other keys.
	keyLife = 24 * time.Hour
	// maxKeys is how many keys of changes a record stores. The oldest are removed.
	maxKeys = 8
	// keyLine is the prefix of the claim lines of keys.
	keyLine = "Idempotency-Key "
	// poll is the delay before a create is tried again after a conflict with a record that cannot
	// be read. Another request is about to create that record, or the record was just deleted.
	poll = 10 * time.Millisecond
)

// idempotencyKey is the Idempotency-Key of a request. The zero value means that there is none. The
// create of a record claims its key, so that the key creates only one record within keyLife. A
// change stores its key in the record.
type idempotencyKey struct {
	// key is a hash of the caller's name and the header.
	key string
	// request is a hash of the request, to detect another request with the same key. The create of
	// a record does not use it, but compares serviceData.Fingerprint.
	request string
}

// usedKey is the key of a change, stored in the record. Version is the version that the change
// created.
type usedKey struct {
	Key     string    `json:"key"`
	Request string    `json:"request"`
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
}

var keyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// idempotencyKey returns the key of the request. The hash of the request is not set (see method
// of). Errors: fielderror.Errors.
func (r *request) idempotencyKey() (idempotencyKey, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return idempotencyKey{}, nil
	}
	if len(values) > 1 || !keyForm.MatchString(values[0]) {
		return idempotencyKey{}, fielderror.Errors{{
			In: fielderror.Header, At: idempotencyHeader, Code: fielderror.CodeInvalidHeader, Detail: "the key is invalid or repeated; send one key of 1 to 255 printable ASCII characters without spaces, such as a UUID",
		}}
	}
	return idempotencyKey{key: digest([]byte(r.caller.Name), []byte(values[0]))}, nil
}

// refuseKey returns an error with the detail if the request has a key. Operations that do not support
// keys call it, so that no client relies on a key that is ignored.
func (r *request) refuseKey(detail string) error {
	if len(r.Header.Values(idempotencyHeader)) == 0 {
		return nil
	}
	return fielderror.Errors{{In: fielderror.Header, At: idempotencyHeader, Code: fielderror.CodeInvalidHeader, Detail: detail}}
}

// of returns the key with the hash of its request, which includes the body.
func (i idempotencyKey) of(r *request, body []byte) idempotencyKey {
	if i.key != "" {
		i.request = digest([]byte(r.Method), []byte(strings.ToLower(r.URL.Path)), body)
	}
	return i
}

// claims returns the claim of a create with the key.
func (i idempotencyKey) claims(now time.Time) []store.Claim {
	if i.key == "" {
		return nil
	}
	return []store.Claim{{Line: keyLine + i.key, Expires: now.Add(keyLife).UTC().Truncate(time.Millisecond)}}
}

func isKeyClaim(claim store.Claim) bool { return strings.HasPrefix(claim.Line, keyLine) }

// keyClaims returns those claims of keys that have not expired.
func keyClaims(claims []store.Claim, now time.Time) []store.Claim {
	var kept []store.Claim
	for _, claim := range claims {
		if isKeyClaim(claim) && now.Before(claim.Expires) {
			kept = append(kept, claim)
		}
	}
	return kept
}

// usedIn reports whether the key is among those of a record, and which version it created. Errors:
// *keyReusedError.
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

// created reports whether the request that created a record had the key.
func (i idempotencyKey) created(rec store.Record, now time.Time) bool {
	return i.key != "" && slices.ContainsFunc(keyClaims(rec.Claims, now), func(c store.Claim) bool { return c.Line == keyLine+i.key })
}

// liveKeys returns those of the keys that have not expired.
func liveKeys(keys []usedKey, now time.Time) []usedKey {
	return slices.DeleteFunc(slices.Clone(keys), func(u usedKey) bool { return now.Sub(u.At) >= keyLife })
}

// addTo adds the key of a change that creates a version, and removes expired and excess keys.
func (i idempotencyKey) addTo(keys []usedKey, version int64, now time.Time) []usedKey {
	kept := liveKeys(keys, now)
	if i.key == "" {
		return kept
	}
	kept = append(kept, usedKey{Key: i.key, Request: i.request, Version: version, At: now.UTC().Truncate(time.Second)})
	return kept[max(0, len(kept)-maxKeys):]
}

// versionOf returns the version that a repeated change created, or the current version rec if that
// version has been removed from the history. If err, the error of usedIn, is not nil, versionOf
// returns err.
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
