package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/move"
	"github.com/paddock-health/paddock/apiserver/store"
)

// TestWorkOfEarlierPhase shows that an API server that was paused does nothing of an earlier phase.
func TestWorkOfEarlierPhase(t *testing.T) {
	heard := mover{reference: sitesv1.SiteMoveReference{UID: "a", Phase: sitesv1.MoveCopying, Direction: sitesv1.MoveForward}}
	for name, test := range map[string]struct {
		uid       types.UID
		phase     sitesv1.MovePhase
		direction sitesv1.MoveDirection
		due       bool
	}{
		"the same phase":      {"a", sitesv1.MoveCopying, sitesv1.MoveForward, true},
		"the pause of writes": {"a", sitesv1.MoveCatchingUp, sitesv1.MoveForward, false},
		"after the switch":    {"a", sitesv1.MoveSwitched, sitesv1.MoveForward, false},
		"the return":          {"a", sitesv1.MoveCopying, sitesv1.MoveBack, false},
		"another move":        {"b", sitesv1.MoveCopying, sitesv1.MoveForward, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &sitesv1.SiteMove{ObjectMeta: metav1.ObjectMeta{UID: test.uid}}
			object.Status.Phase, object.Status.Direction = test.phase, test.direction
			if got := heard.isDue(object); got != test.due {
				t.Errorf("due: %t", got)
			}
		})
	}
}

// TestWebhookNames renames the webhook of a delivery, and the targets of its event.
func TestWebhookNames(t *testing.T) {
	all := []delivery.Archived{{Delivery: delivery.Delivery{ID: "?", Webhook: "a", Event: store.AcceptedEvent{ID: "e", Targets: []string{"a", "b", "gone"}}}}}
	webhookNames{"a": "x", "b": "y"}.apply(all)
	want := []delivery.Archived{{Delivery: delivery.Delivery{ID: delivery.DeliveryID("e", "x"), Webhook: "x", Event: store.AcceptedEvent{ID: "e", Targets: []string{"x", "y", "gone"}}}}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// standingClock is a storage whose watermark does not advance.
type standingClock struct{ store.Store }

func (standingClock) Watermark(context.Context) (time.Time, error) { return time.Time{}, nil }

// TestAwaitClock shows that the wait for the clock of the target has an end.
func TestAwaitClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := awaitClock(t.Context(), standingClock{}, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
	})
}

// TestFailuresAreLoggedRarely shows that a database that cannot be reached for an hour fills no log, and that the
// work goes on at once when it can be reached again.
func TestFailuresAreLoggedRarely(t *testing.T) {
	var log bytes.Buffer
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(former)
	synctest.Test(t, func(t *testing.T) {
		const outage = time.Hour
		began, first := time.Now(), 0
		var m mover
		m.run(t.Context(), func(context.Context) error {
			if first == 0 {
				first = bytes.Count(log.Bytes(), []byte("the work of a move failed"))
			}
			if time.Since(began) < outage {
				return fmt.Errorf("read from port %d: %w", time.Since(began).Milliseconds(), store.ErrUnavailable)
			}
			return nil
		})
		if late := time.Since(began) - outage; late > moveRetry {
			t.Errorf("the work was tried %s after the end of the outage, want at most %s", late, moveRetry)
		}
		if first != 1 {
			t.Errorf("%d log lines before the second attempt, want 1", first)
		}
		if lines := bytes.Count(log.Bytes(), []byte("the work of a move failed")); lines < 10 || lines > 30 {
			t.Errorf("%d log lines in an hour, want 10 to 30", lines)
		}
	})
}

// TestPermanentFailuresAreRetriedSlowly shows that work that cannot be done does not compare all records twice a
// second until a person acts.
func TestPermanentFailuresAreRetriedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, attempts := time.Now(), 0
		var m mover
		m.run(t.Context(), func(context.Context) error {
			attempts++
			if time.Since(began) < time.Minute {
				return &move.DifferentError{Key: store.Key{Type: "Patient", ID: "rex"}}
			}
			return nil
		})
		if attempts > 13 {
			t.Errorf("%d attempts in a minute, want at most 13", attempts)
		}
		if late := time.Since(began) - time.Minute; late > permanentRetry {
			t.Errorf("the work was tried %s after the cause was removed, want at most %s", late, permanentRetry)
		}
	})
}
