package store

import (
	"testing"
	"time"
)

func TestEnvelopeFill(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 30, 0, 120e6, time.FixedZone("", 3600))
	for name, test := range map[string]struct {
		envelope Envelope
		want     string
	}{
		"sequence only": {
			envelope: Envelope{JSON: []byte(`{"sequence":,"data":1}`), SequenceOffset: 12},
			want:     `{"sequence":7,"data":1}`,
		},
		"all values": {
			envelope: Envelope{
				JSON: []byte(`{"timestamp":"","sequence":,"meta":{"versionId":"","lastUpdated":""}}`), SequenceOffset: 27, TimeOffsets: []int{14, 66}, VersionOffset: 49,
			},
			want: `{"timestamp":"2026-03-01T08:30:00.120Z","sequence":7,"meta":{"versionId":"3","lastUpdated":"2026-03-01T08:30:00.120Z"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(test.envelope.Fill(7, 3, at)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
