package delivery

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-1": 0, "1.5": 0, "soon": 0,
		"86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Sat, 01 Mar 2031 09:00:30 GMT": 30 * time.Second, "Sat, 01 Mar 2031 08:00:00 GMT": 0, "Sun, 01 Mar 2032 09:00:00 GMT": 24 * time.Hour,
		"Saturday, 01-Mar-31 09:01:00 GMT": time.Minute,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After: %q is %v, want %v", value, got, want)
		}
	}
}

func TestPauseVaries(t *testing.T) {
	delays := []time.Duration{10 * time.Second}
	for random, want := range map[float64]time.Duration{0: 8 * time.Second, 0.5: 10 * time.Second, 0.75: 11 * time.Second} {
		if got, ok := pause(delays, 0, random); got != want || !ok {
			t.Errorf("with %v: %v, %t, want %v", random, got, ok, want)
		}
	}
	if got, ok := pause(delays, 0, 0.999999); got <= 11*time.Second || got >= 12*time.Second || !ok {
		t.Errorf("the longest is %v", got)
	}
}

// TestSchedule attempts a delivery that always fails, on a fake clock, until the schedule is over.
func TestSchedule(t *testing.T) {
	for name, test := range map[string]struct {
		delays []time.Duration
		want   []time.Duration
	}{
		"the default": {DefaultDelays, []time.Duration{
			0, 5 * time.Second, 5*time.Minute + 5*time.Second, 35*time.Minute + 5*time.Second,
			2*time.Hour + 35*time.Minute + 5*time.Second, 7*time.Hour + 35*time.Minute + 5*time.Second, 17*time.Hour + 35*time.Minute + 5*time.Second,
			31*time.Hour + 35*time.Minute + 5*time.Second, 51*time.Hour + 35*time.Minute + 5*time.Second, 75*time.Hour + 35*time.Minute + 5*time.Second,
		}},
		"its own": {[]time.Duration{time.Second, time.Minute}, []time.Duration{0, time.Second, 61 * time.Second}},
		"none":    {nil, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := &webhooks{err: &SecretError{Webhook: Webhook{ID: "w", Delays: test.delays}, Problem: "there is no Secret"}}
				site := NewSender(SenderConfig{Random: func() float64 { return 0.5 }}).Site("clinic", hooks, nil)
				began := time.Now()
				var at []time.Duration
				for attempts := 0; ; attempts++ {
					outcome, err := site.Attempt(t.Context(), "w", store.AcceptedEvent{ID: "e"}, attempts)
					if err != nil {
						t.Fatal(err)
					}
					at = append(at, outcome.Attempt.At.Sub(began))
					if outcome.Attempt.Reason != ReasonSecret || outcome.Attempt.Message != "there is no Secret" {
						t.Fatalf("attempt %+v", outcome.Attempt)
					}
					if outcome.Status == Failed {
						break
					}
					if outcome.Status != Pending {
						t.Fatalf("the delivery is %s", outcome.Status)
					}
					<-time.After(time.Until(outcome.Next))
				}
				if diff := cmp.Diff(test.want, at); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAfter(t *testing.T) {
	begin := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	failure := func(seconds int) Attempt {
		return Attempt{At: at(seconds), Duration: time.Second, Reason: ReasonStatus}
	}
	success := Attempt{At: at(7), Reason: ReasonDelivered}
	for name, test := range map[string]struct {
		before   State
		attempts []Attempt
		want     State
	}{
		"a success":             {State{Failures: 7, FailingSince: at(0), LastSuccess: at(1), OpenUntil: at(6)}, []Attempt{success}, State{LastSuccess: at(7)}},
		"a failure":             {State{LastSuccess: at(1)}, []Attempt{failure(2)}, State{Failures: 1, FailingSince: at(2), LastSuccess: at(1)}},
		"four":                  {State{}, []Attempt{failure(2), failure(3), failure(4), failure(5)}, State{Failures: 4, FailingSince: at(2)}},
		"five":                  {State{}, []Attempt{failure(2), failure(3), failure(4), failure(5), failure(6)}, State{Failures: 5, FailingSince: at(2), OpenUntil: at(17)}},
		"six":                   {State{Failures: 5, FailingSince: at(2), OpenUntil: at(17)}, []Attempt{failure(17)}, State{Failures: 6, FailingSince: at(2), OpenUntil: at(38)}},
		"nine":                  {State{Failures: 8, FailingSince: at(2)}, []Attempt{failure(100)}, State{Failures: 9, FailingSince: at(2), OpenUntil: at(261)}},
		"ten":                   {State{Failures: 9, FailingSince: at(2)}, []Attempt{failure(100)}, State{Failures: 10, FailingSince: at(2), OpenUntil: at(401)}},
		"a million":             {State{Failures: 1e6, FailingSince: at(2)}, []Attempt{failure(100)}, State{Failures: 1e6 + 1, FailingSince: at(2), OpenUntil: at(401)}},
		"begun before it opens": {State{Failures: 5, FailingSince: at(2), OpenUntil: at(17)}, []Attempt{failure(6), failure(7), failure(16)}, State{Failures: 5, FailingSince: at(2), OpenUntil: at(17)}},
		"nothing sent":          {State{Failures: 1, FailingSince: at(2)}, []Attempt{{At: at(3), Reason: ReasonDisabled}}, State{Failures: 1, FailingSince: at(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			state := test.before
			for _, attempt := range test.attempts {
				state = After(state, attempt)
			}
			if diff := cmp.Diff(test.want, state); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPayload(t *testing.T) {
	const envelope = `{"id":"e1","type":"user.created","subject":"Practitioner/1","sequence":7,"changedFields":["b"],"data":{"b":1.50,"a":{"b":"<é>"},"":null,"a b":[{"a":1}]}}`
	const head = `{"id":"e1","type":"user.created","subject":"Practitioner/1","sequence":7,"changedFields":["b"]`
	for name, test := range map[string]struct {
		envelope    string
		fields      []string
		withoutData bool
		want        string
	}{
		"all":                     {envelope, nil, false, envelope},
		"in the event's order":    {envelope, []string{"a", "b"}, false, head + `,"data":{"b":1.50,"a":{"b":"<é>"}}}`},
		"of the top level only":   {envelope, []string{"a.b", "a/b"}, false, head + `,"data":{}}`},
		"unknown ones":            {envelope, []string{"x", "b", "y"}, false, head + `,"data":{"b":1.50}}`},
		"unusual names":           {envelope, []string{"", "a b"}, false, head + `,"data":{"":null,"a b":[{"a":1}]}}`},
		"no data":                 {envelope, nil, true, head + `}`},
		"no data, whatever wants": {envelope, []string{"a"}, true, head + `}`},
		"no object":               {`{"id":"e1","data":null}`, []string{"a"}, false, `{"id":"e1","data":null}`},
		"data of data":            {`{"data":{"data":{"a":1}}}`, []string{"data"}, false, `{"data":{"data":{"a":1}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got, err := payload([]byte(test.envelope), test.fields, test.withoutData)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, string(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	if _, err := payload([]byte(`{"data":`), []string{"a"}, false); err == nil {
		t.Error("half an envelope is taken")
	}
}

func TestNamesOfTheCluster(t *testing.T) {
	names := newTransports(Egress{ClusterDomain: "clinic.internal"})
	for host, want := range map[string]bool{
		"kubernetes": true, "kubernetes.default": false, "kubernetes.default.svc": true, "a.b.svc.clinic.internal": true, "svc": true, "clinic.internal": true,
		"10-0-0-1.b.pod.clinic.internal": true, "example.org": false, "svc.example.org": false, "notclinic.internal": false, "192.0.2.1": false, "2001:db8::1": false,
		"localhost": false,
	} {
		if got := names.isOfCluster(host); got != want {
			t.Errorf("%s is of the cluster: %t, want %t", host, got, want)
		}
	}
}
