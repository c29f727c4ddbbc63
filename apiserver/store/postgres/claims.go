package postgres

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// packClaims makes what a record's row keeps of its claims: nil when it has none.
func packClaims(claims []store.Claim) []byte {
	if len(claims) == 0 {
		return nil
	}
	packed, _ := json.Marshal(claims) // strings and times can be encoded
	return packed
}

var errBadClaims = errors.New("the stored claims cannot be read")

func unpackClaims(packed []byte) ([]store.Claim, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	var claims []store.Claim
	if err := json.Unmarshal(packed, &claims); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadClaims, err)
	}
	for i := range claims {
		c := &claims[i]
		c.From, c.Until, c.Expires = c.From.UTC(), c.Until.UTC(), c.Expires.UTC()
	}
	return claims, nil
}

// held is a row of the table of claims.
type held struct {
	line, self          int64
	from, until, expiry int64
	holder              store.Key
	text                string
}

// The bounds of an interval that has none.
func microsOr(t time.Time, none int64) int64 {
	if t.IsZero() {
		return none
	}
	return t.UnixMicro()
}

func timeOf(micros, none int64) time.Time {
	if micros == none {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func (h held) claim() store.Claim {
	return store.Claim{
		Line: h.text, From: timeOf(h.from, math.MinInt64), Until: timeOf(h.until, math.MaxInt64),
		Expires: timeOf(h.expiry, math.MaxInt64),
	}
}

// ledger is what is claimed of the lines that a write takes claims on, while it holds
// their locks.
type ledger struct {
	hash  hasher
	rows  []held
	lines []string
}

// linesOf lists the lines that operations claim.
func linesOf(ops []store.Op) []string {
	var lines []string
	for _, op := range ops {
		if op.Kind != store.Put {
			continue
		}
		for _, claim := range op.Claims {
			lines = append(lines, claim.Line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// change enters what a record holds from now on, and refuses what another holds.
func (l *ledger) change(next *state, wanted []store.Claim, now time.Time) error {
	rows := slices.Clone(l.rows)
	slices.SortFunc(rows, func(a, b held) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.self, b.self)) })
	rows = slices.DeleteFunc(rows, func(h held) bool { return h.self == next.self || expired(h.claim(), now) })
	for _, claim := range wanted {
		line := l.hash.line(claim.Line)
		for _, other := range rows {
			if other.self == next.self || other.line != line {
				continue
			}
			other.text = claim.Line
			if c := other.claim(); c.Overlaps(claim) {
				return &store.ClaimError{Claim: c, Holder: other.holder}
			}
		}
		rows = append(rows, held{
			line: line, self: next.self, holder: next.key, from: microsOr(claim.From, math.MinInt64),
			until: microsOr(claim.Until, math.MaxInt64), expiry: microsOr(claim.Expires, math.MaxInt64),
		})
	}
	l.rows = rows
	return nil
}

// release drops what a record holds.
func (l *ledger) release(self int64) {
	l.rows = slices.DeleteFunc(l.rows, func(h held) bool { return h.self == self })
}
