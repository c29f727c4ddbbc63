package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/paddock-health/paddock/apiserver/access"
)

// siteGroupVersion is the apiVersion of Sites, as Events refer to them.
const siteGroupVersion = "paddock.health/v1alpha1"

// Events records Kubernetes Events about Sites.
type Events struct {
	recorder  events.EventRecorder
	broadcast events.EventBroadcaster
	reasons   reasons
}

// NewEvents returns an Events. Kubernetes Events are written while Run runs.
func NewEvents(config *rest.Config) (*Events, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for Events: %w", err)
	}
	broadcast := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	return &Events{recorder: broadcast.NewRecorder(runtime.NewScheme(), "paddock-apiserver"), broadcast: broadcast}, nil
}

// Run writes Events until ctx ends.
func (e *Events) Run(ctx context.Context) error {
	if err := e.broadcast.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	<-ctx.Done()
	e.broadcast.Shutdown()
	return nil
}

// BrokenGlass records that a caller bypassed the privacy rules of a Site. It does not block. Requests of one
// caller for the same reason can be one Event, with a count, and so can those beyond maxReasons reasons.
func (e *Events) BrokenGlass(site access.Tenant, caller access.Caller, action access.Action, reason string) {
	regarding := &corev1.ObjectReference{APIVersion: siteGroupVersion, Kind: "Site", Namespace: site.Namespace, Name: site.Name}
	note := fmt.Sprintf("%s bypassed the privacy rules for %s: %s", caller.Name, action.Resource, reason)
	if !e.reasons.accept(site.Namespace+"/"+caller.Name, note, time.Now()) {
		note = caller.Name + " bypassed the privacy rules for further reasons. The audit log has each request."
	}
	// The broadcaster does not compare notes: it counts an Event that differs from an earlier one in nothing
	// else as a repetition of it. The digest makes Events with other notes differ.
	digest := sha256.Sum256([]byte(note))
	related := &corev1.ObjectReference{Kind: rbacv1.UserKind, Name: caller.Name, UID: types.UID(hex.EncodeToString(digest[:]))}
	e.recorder.Eventf(regarding, related, corev1.EventTypeWarning, "BrokenGlass", "BreakGlass", "%s", note)
}

const (
	// maxReasons is the maximum number of notes of a caller at a Site in reasonsPeriod. A caller who gives
	// each request another reason would otherwise fill etcd with Events.
	maxReasons = 20
	// reasonsPeriod is the time for which the broadcaster compares Events.
	reasonsPeriod = 6 * time.Minute
)

// reasons are the notes of Events in the present period, by Site and caller. The zero value is ready to use.
type reasons struct {
	mu    sync.Mutex
	since time.Time
	notes map[string]map[string]bool
}

// accept reports whether a note is one of the first maxReasons of a caller at a Site in this period.
func (r *reasons) accept(of, note string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= reasonsPeriod {
		r.since, r.notes = now, map[string]map[string]bool{}
	}
	seen := r.notes[of]
	if seen == nil {
		seen = map[string]bool{}
		r.notes[of] = seen
	}
	if len(seen) < maxReasons {
		seen[note] = true
	}
	return seen[note]
}
