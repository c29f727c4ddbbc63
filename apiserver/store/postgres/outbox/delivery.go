package outbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

// statuses are the statuses of deliveries. The column "status" has the index in this list.
var statuses = []delivery.Status{delivery.Pending, delivery.Delivered, delivery.Failed, delivery.Undelivered}

// StatusNumber returns the value of the column "status" for a status, or -1 if there is no such
// status.
func StatusNumber(status delivery.Status) int16 {
	for n, s := range statuses {
		if s == status {
			return int16(n) //nolint:gosec // there are four
		}
	}
	return -1
}

// StatusOf returns the status for a value of the column "status". It panics if no status has the
// number.
func StatusOf(number int16) delivery.Status { return statuses[number] }

// maxAttempts is the maximum number of attempts that are kept of a delivery. At the limit the
// oldest one is dropped.
const maxAttempts = 20

// AddAttempt returns the value of the column "attempts" with an attempt added. packed is the value
// before, which is nil if there was no attempt. Only the latest 20 attempts are kept, and at most
// delivery.MaxResponse bytes of the response.
func AddAttempt(packed []byte, attempt delivery.Attempt) ([]byte, error) {
	attempts, err := Attempts(packed)
	if err != nil {
		return nil, err
	}
	attempt.At = attempt.At.UTC()
	attempt.Response = attempt.Response[:min(len(attempt.Response), delivery.MaxResponse)]
	attempts = append(attempts, attempt)
	return json.Marshal(attempts[max(0, len(attempts)-maxAttempts):])
}

// Attempts decodes a value of the column "attempts", with the oldest attempt first. It returns nil
// for nil.
func Attempts(packed []byte) ([]delivery.Attempt, error) {
	if packed == nil {
		return nil, nil
	}
	var attempts []delivery.Attempt
	if err := json.Unmarshal(packed, &attempts); err != nil {
		return nil, fmt.Errorf("read the attempts of a delivery: %w", err)
	}
	return attempts, nil
}

// Millis returns a time in the form of time columns: milliseconds since 1970, or 0 for the zero time.
func Millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// Time returns the time, in UTC, of a value that Millis returned.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
