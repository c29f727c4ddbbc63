package cluster

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// plan is what an operation does, given the newest version of its record.
type plan struct {
	store.Decision
	// next is the spec of the Record after the write, if the Action makes or changes a version. For a
	// purge it has only the events.
	next recordsv1.RecordSpec
	// carried are the events that the Record had before the write. fresh are those that the write
	// adds.
	carried, fresh []recordsv1.PendingEvent
}

// decide returns the plan of an operation. Errors: those of store.Precondition.Check.
func decide(op store.Op, current *recordsv1.Record, limits Limits, now time.Time, newID func() string) (plan, error) {
	var record *store.Record
	if current != nil {
		r := toRecord(current)
		record = &r
	}
	d, err := store.Decide(op, record, now)
	p := plan{Decision: d}
	if err == nil && d.Action != store.ActionNone && d.Action != store.ActionPurge {
		p.next = nextSpec(&d, current, limits, newID)
	}
	return p, err
}

// nextSpec returns the spec of the Record after a write that makes or changes a version.
func nextSpec(d *store.Decision, current *recordsv1.Record, limits Limits, newID func() string) recordsv1.RecordSpec {
	after := &d.After
	next := recordsv1.RecordSpec{Type: after.Key.Type, ID: after.Key.ID}
	if current != nil {
		next = current.Spec
	}
	next.Write = newID()
	next.Metadata, next.MetadataVersion = string(after.Metadata), after.MetadataVersion
	if d.Action == store.ActionAnnotate {
		return next
	}
	next.Version, next.Method, next.Deleted = after.Version, string(after.Method), after.Deleted
	next.Updated = metav1.NewMicroTime(after.Updated)
	next.Body, next.IDOffset, next.MetaOffset = string(after.Body.JSON), after.Body.IDOffset, after.Body.MetaOffset
	next.Claims = heldClaims(after.Claims, next.Claims, newID)
	if d.Action == store.ActionUpdate {
		past := supersede(&current.Spec)
		sizes := append(slices.Clone(current.Spec.History), supersededSize(&past))
		next.History = limits.trimHistory(sizes, &next)
		next.HistoryDropped = len(sizes) - len(next.History)
		next.HistoryUpdated, next.HistoryDeletions = historyTimes(&current.Spec, len(next.History))
	}
	if d.Outcome == store.Created {
		next.UID, next.Created = newID(), next.Updated
	}
	if d.Action == store.ActionCreate {
		next.Lineage = next.UID
	}
	return next
}

// historyTimes returns the times in milliseconds at which the kept superseded versions were
// written, the newest one last. deletions are the numbers of those that are tombstones. kept is the
// number of kept versions.
func historyTimes(spec *recordsv1.RecordSpec, kept int) (updated, deletions []int64) {
	updated = append(slices.Clone(spec.HistoryUpdated), spec.Updated.UnixMilli())
	deletions = slices.Clone(spec.HistoryDeletions)
	if spec.Deleted {
		deletions = append(deletions, spec.Version)
	}
	oldest := spec.Version + 1 - int64(kept)
	deletions = slices.DeleteFunc(deletions, func(version int64) bool { return version < oldest })
	return updated[max(0, len(updated)-kept):], deletions
}

// heldClaims returns the claims that a record holds after an operation. A claim that is held
// already, with the same expiry, keeps its nonce, which identifies its entry in the RecordClaim.
// Other claims get a new nonce, so that two writers with different expiries do not change each
// other's entries.
func heldClaims(wanted []store.Claim, held []recordsv1.HeldClaim, newID func() string) []recordsv1.HeldClaim {
	if len(wanted) == 0 {
		return nil
	}
	claims := make([]recordsv1.HeldClaim, len(wanted))
	before := toClaims(held)
	for i, w := range wanted {
		claims[i] = recordsv1.HeldClaim{Line: w.Line, From: objects.ToMicro(w.From), Until: objects.ToMicro(w.Until), Expires: objects.ToMicro(w.Expires)}
		if at := slices.IndexFunc(before, func(b store.Claim) bool { return b.Same(w) }); at >= 0 {
			claims[i].Nonce = held[at].Nonce
		} else {
			claims[i].Nonce = newID()
		}
	}
	return claims
}
