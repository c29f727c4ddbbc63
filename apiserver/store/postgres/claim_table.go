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
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// packClaims encodes the claims of a record for its row. It returns nil if there are none.
func packClaims(claims []store.Claim) []byte {
	if len(claims) == 0 {
		return nil
	}
	packed, _ := json.Marshal(claims) // cannot fail for strings and times
	return packed
}

var errBadClaims = errors.New("the stored claims are invalid")

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

// claimRow is a row of the table claim. line is the hash of the line. text is the line itself if it
// is known, and otherwise empty.
type claimRow struct {
	line, self          int64
	from, until, expiry int64
	holder              store.Key
	text                string
}

// microsOr returns a bound of an interval in microseconds since 1970. It returns none if t is zero.
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

func (h claimRow) claim() store.Claim {
	return store.Claim{
		Line: h.text, From: timeOf(h.from, math.MinInt64), Until: timeOf(h.until, math.MaxInt64),
		Expires: timeOf(h.expiry, math.MaxInt64),
	}
}

// claimTable holds the rows of the table claim for the lines that a write has locked. The
// operations of the write change them.
type claimTable struct {
	hash  indexrow.Hasher
	rows  []claimRow
	lines []string
}

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

// set replaces the claims of a record in t.rows, and removes expired claims. It does not change the
// database. Errors: *store.ClaimError if a claim of another record overlaps; t.rows is then
// unchanged.
func (t *claimTable) set(next *state, wanted []store.Claim, now time.Time) error {
	rows := slices.Clone(t.rows)
	slices.SortFunc(rows, func(a, b claimRow) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.self, b.self)) })
	rows = slices.DeleteFunc(rows, func(h claimRow) bool { return h.self == next.self || h.claim().Expired(now) })
	for _, claim := range wanted {
		line := t.hash.Line(claim.Line)
		for _, other := range rows {
			if other.self == next.self || other.line != line {
				continue
			}
			other.text = claim.Line
			if c := other.claim(); c.Overlaps(claim) {
				return &store.ClaimError{Claim: c, Holder: other.holder}
			}
		}
		rows = append(rows, claimRow{
			line: line, self: next.self, holder: next.key, from: microsOr(claim.From, math.MinInt64),
			until: microsOr(claim.Until, math.MaxInt64), expiry: microsOr(claim.Expires, math.MaxInt64),
		})
	}
	t.rows = rows
	return nil
}

func (t *claimTable) release(self int64) {
	t.rows = slices.DeleteFunc(t.rows, func(h claimRow) bool { return h.self == self })
}
