package kubernetes

import (
	"encoding/json"
	"math"
	"time"
)

// unixTime is a NumericDate (RFC 7519 §2): seconds since the epoch. A number of 2^40 or more is
// ignored and leaves the zero time.
type unixTime struct{ time.Time }

func (t *unixTime) UnmarshalJSON(data []byte) error {
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return err
	}
	if math.Abs(seconds) < 1<<40 {
		t.Time = time.Unix(int64(seconds), 0)
	}
	return nil
}

// audiences is the aud claim: one string or several (RFC 7519 §4.1.3).
type audiences []string

func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	var several []string
	err := json.Unmarshal(data, &several)
	*a = several
	return err
}
