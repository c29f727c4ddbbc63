package schema

import (
	"strings"
	"testing"
	"time"
)

func TestParseInstant(t *testing.T) {
	tests := map[string]struct {
		want string // in UTC
		// refusal is a part of the error.
		refusal string
	}{
		"2026-03-01T09:30:00Z":              {want: "2026-03-01T09:30:00Z"},
		"2026-03-01t09:30:00z":              {want: "2026-03-01T09:30:00Z"},
		"2026-03-01T09:30:00+05:45":         {want: "2026-03-01T03:45:00Z"},
		"2026-03-01T09:30:00-00:00":         {want: "2026-03-01T09:30:00Z"},
		"2026-03-01T00:30:00+14:00":         {want: "2026-02-28T10:30:00Z"},
		"2026-03-01T09:30:00.5Z":            {want: "2026-03-01T09:30:00.5Z"},
		"2026-03-01T09:30:00.0000000+01:00": {want: "2026-03-01T08:30:00Z"},
		"2026-03-01T09:30:00.123456000Z":    {want: "2026-03-01T09:30:00.123456Z"},
		"2024-02-29T00:00:00Z":              {want: "2024-02-29T00:00:00Z"},
		"1900-01-01T00:00:00Z":              {want: "1900-01-01T00:00:00Z"},
		"9999-12-31T23:59:59.999999Z":       {want: "9999-12-31T23:59:59.999999Z"},
		// The two half past two of a night when clocks go back are different instants, and
		// the one of a night when they go forward is the offset's word.
		"2026-10-25T02:30:00+02:00": {want: "2026-10-25T00:30:00Z"},
		"2026-10-25T02:30:00+01:00": {want: "2026-10-25T01:30:00Z"},
		"2026-03-29T02:30:00+01:00": {want: "2026-03-29T01:30:00Z"},

		"2026-06-30T23:59:60Z":          {refusal: "leap second"},
		"2016-12-31T23:59:60+00:00":     {refusal: "leap second"},
		"2026-03-01T09:30:00.1234567Z":  {refusal: "microsecond"},
		"2026-03-01T09:30:00":           {refusal: "no offset"},
		"2026-03-01T09:30":              {refusal: "no offset"},
		"2026-03-01":                    {refusal: "no offset"},
		"1899-12-31T23:59:59Z":          {refusal: "1900 to 9999"},
		"1900-01-01T00:00:00+00:01":     {refusal: "1900 to 9999"},
		"0000-01-01T00:00:00Z":          {refusal: "1900 to 9999"},
		"9999-12-31T23:59:59-00:01":     {refusal: "1900 to 9999"},
		"10000-01-01T00:00:00Z":         {refusal: "not a time"},
		"2026-02-29T00:00:00Z":          {refusal: "out of range"},
		"2026-04-31T00:00:00Z":          {refusal: "out of range"},
		"2026-13-01T00:00:00Z":          {refusal: "out of range"},
		"2026-03-01T24:00:00Z":          {refusal: "out of range"},
		"2026-03-01T09:60:00Z":          {refusal: "out of range"},
		"2026-03-01T09:30:61Z":          {refusal: "out of range"},
		"2026-03-01T09:30:00+24:00":     {refusal: "not a time"},
		"2026-03-01T09:30:00+01:60":     {refusal: "not a time"},
		"2026-03-01T9:30:00Z":           {refusal: "not a time"},
		"2026-03-01T09:30:00,5Z":        {refusal: "not a time"},
		"2026-03-01 09:30:00Z":          {refusal: "not a time"},
		"2026-03-01T09:30:00+0545":      {refusal: "not a time"},
		"2026-03-01T09:30:00 05:45":     {refusal: "not a time"},
		"2026-W09-7T09:30:00Z":          {refusal: "not a time"},
		"1772357400":                    {refusal: "not a time"},
		"":                              {refusal: "not a time"},
		" 2026-03-01T09:30:00Z":         {refusal: "not a time"},
		"2026-03-01T09:30:00Z\n":        {refusal: "not a time"},
		"２０２６-03-01T09:30:00Z":          {refusal: "not a time"},
		"2026-03-01T09:30:00.Z":         {refusal: "not a time"},
		"-2026-03-01T09:30:00Z":         {refusal: "not a time"},
		"2026-03-01T09:30:00Europe/Rom": {refusal: "not a time"},
	}
	for text, test := range tests {
		at, err := ParseInstant(text)
		if test.refusal != "" {
			if err == nil || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("%s: got %v, %v, want a refusal with %q", text, at, err, test.refusal)
			}
			continue
		}
		if err != nil || at.UTC().Format(time.RFC3339Nano) != test.want {
			t.Errorf("%s: got %v, %v, want %s", text, at, err, test.want)
		}
	}
}
