package deliveries

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

func TestRing(t *testing.T) {
	var r ring
	add := func(n, bytes int) {
		r.add(delivered{
			WebhookDeliverySpec: recordsv1.WebhookDeliverySpec{
				Webhook: "a", Event: fmt.Sprint(n), Attempts: []recordsv1.DeliveryAttempt{{Response: []byte(strings.Repeat("r", bytes/2))}},
			},
			Text: strings.Repeat("x", bytes/2),
		})
	}
	for n := range maxDelivered + 50 {
		add(n, 10)
	}
	add(100, 10) // once more
	if len(r.done) != maxDelivered || r.done[0].Event != "50" || r.done[maxDelivered-1].Event != "100" {
		t.Fatalf("%d deliveries from %s to %s", len(r.done), r.done[0].Event, r.done[len(r.done)-1].Event)
	}
	add(1000, maxDeliveredBytes/2)
	add(1001, maxDeliveredBytes/2)
	text, err := r.pack()
	if err != nil || len(text) > maxDeliveredBytes {
		t.Fatalf("packed into %d bytes, error %v", len(text), err)
	}
	var packed []delivered
	if err := json.Unmarshal(text, &packed); err != nil {
		t.Fatal(err)
	}
	newest, before := packed[len(packed)-1], packed[len(packed)-2]
	if len(packed) != maxDelivered || newest.Text == "" || before.Text != "" || before.Attempts[0].Response != nil {
		t.Errorf("%d deliveries; the newest has an envelope of %d bytes, the one before of %d", len(packed), len(newest.Text), len(before.Text))
	}
}

// TestRingSize fills the log up to its maximum size. An envelope has no more bytes with characters that JSON
// in HTML escapes, and no more envelopes are dropped than necessary. A log that an earlier release stored with
// these escapes is read as it was.
func TestRingSize(t *testing.T) {
	const each = 64 << 10
	for name, piece := range map[string]string{"text": "abc", "HTML": "<&>", "JSON": `{"a` + "\n"} {
		t.Run(name, func(t *testing.T) {
			envelope := strings.Repeat(piece, each/len(piece))
			encoded, err := encode(envelope)
			if err != nil {
				t.Fatal(err)
			}
			fit := maxDeliveredBytes / (len(encoded) + 512) // with the other fields
			var r ring
			for n := range fit + 3 {
				r.add(delivered{WebhookDeliverySpec: recordsv1.WebhookDeliverySpec{Webhook: "a", Event: fmt.Sprint(n)}, Text: envelope})
			}
			escaped, err := json.Marshal(r.done)
			if err != nil {
				t.Fatal(err)
			}
			earlier, err := ringOf(&recordsv1.WebhookDeliveryLog{Spec: recordsv1.WebhookDeliveryLogSpec{Delivered: objects.Compress(escaped, nil)}})
			if err != nil {
				t.Fatal(err)
			}
			for _, packed := range []*ring{&r, earlier} {
				text, err := packed.pack()
				if err != nil || len(text) > maxDeliveredBytes {
					t.Fatalf("packed into %d bytes, error %v", len(text), err)
				}
				var stored []delivered
				if err := json.Unmarshal(text, &stored); err != nil {
					t.Fatal(err)
				}
				kept := 0
				for i := range stored {
					if stored[i].Text == envelope {
						kept++
					}
				}
				if kept != fit || stored[2].Text != "" {
					t.Errorf("%d envelopes were kept, want the newest %d", kept, fit)
				}
			}
		})
	}
}

// TestMergeAttempts merges the attempts of two states of a delivery. An attempt that was read from an object has
// its time in microseconds.
func TestMergeAttempts(t *testing.T) {
	start := time.Date(2031, 3, 1, 9, 0, 0, 1500, time.UTC)
	attempts := func(numbers ...int) (all []recordsv1.DeliveryAttempt) {
		for _, n := range numbers {
			all = append(all, recordsv1.DeliveryAttempt{At: metav1.NewMicroTime(start.Add(time.Duration(n) * time.Second)), Milliseconds: int64(n)})
		}
		return all
	}
	upTo := func(first, last int) (numbers []int) {
		for n := first; n <= last; n++ {
			numbers = append(numbers, n)
		}
		return numbers
	}
	for name, test := range map[string]struct{ a, b, want []int }{
		"the same":         {[]int{1, 2}, []int{1, 2}, []int{1, 2}},
		"none":             {nil, nil, nil},
		"one lacks some":   {[]int{1}, []int{1, 2}, []int{1, 2}},
		"each lacks some":  {[]int{1, 3}, []int{1, 2}, []int{1, 2, 3}},
		"more than listed": {upTo(1, maxAttempts), upTo(3, maxAttempts+2), upTo(3, maxAttempts+2)},
		"only the order":   {[]int{2, 1}, []int{1}, []int{2, 1}}, // the clock was set back
	} {
		t.Run(name, func(t *testing.T) {
			b := attempts(test.b...)
			for i := range b {
				b[i].At.Time = b[i].At.Truncate(time.Microsecond)
			}
			var got []int
			for _, attempt := range mergeAttempts(attempts(test.a...), b) {
				got = append(got, int(attempt.Milliseconds))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWants checks that every replica concludes the same, that all get some, and that few shards move.
func TestWants(t *testing.T) {
	const shards = 64
	share := func(members ...string) map[int]string {
		of := map[int]string{}
		for shard := range shards {
			of[shard] = wants(shard, members)
		}
		return of
	}
	three, two := share("a", "b", "c"), share("a", "b")
	count := map[string]int{}
	for shard, member := range three {
		count[member]++
		if member != "c" && two[shard] != member {
			t.Errorf("shard %d moves from %s to %s when c goes", shard, member, two[shard])
		}
	}
	for _, member := range []string{"a", "b", "c"} {
		if count[member] < shards/6 {
			t.Errorf("%s has %d of %d shards", member, count[member], shards)
		}
	}
	if diff := cmp.Diff(three, share("a", "b", "c")); diff != "" {
		t.Errorf("shares differ:\n%s", diff)
	}
}
