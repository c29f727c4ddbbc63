package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// claimDeadline is the maximum time between adding a claim to a RecordClaim and listing it in its
// Record. After that time another writer may remove the claim, and the late write then fails.
const claimDeadline = 30 * time.Second

// acquire adds claims to the RecordClaims of their lines, except claims that are in held and have not
// expired. Errors: *store.ClaimError; errConflict if the record has changed; those of
// objects.StoreError.
func (w *write) acquire(ctx context.Context, claims, held []recordsv1.HeldClaim) error {
	base := w.site.index.lookup(w.name)
	for _, claim := range claims {
		before := slices.IndexFunc(held, func(h recordsv1.HeldClaim) bool { return h.Nonce == claim.Nonce })
		if before >= 0 && !expired(claim.Expires, w.site.engine.clock()) {
			continue
		}
		if err := w.addEntry(ctx, claim, base); err != nil {
			return err
		}
		if before < 0 {
			w.entered = append(w.entered, claim)
		}
		w.site.engine.afterStep(StepClaims)
	}
	return nil
}

// errOvertaken means that another write of the same record finished first.
var errOvertaken = errors.New("another write of the record finished first")

func expired(at *metav1.MicroTime, now time.Time) bool {
	return at != nil && !now.Before(at.Time)
}

// addEntry adds one claim to its RecordClaim by compare-and-swap. It removes overlapping entries of
// other records that are not active. It fails with errConflict if the state of the record in the index
// is no longer base. So concurrent writers of a record fail early, without waiting for the RecordClaim.
func (w *write) addEntry(ctx context.Context, claim recordsv1.HeldClaim, base *recordsv1.Record) error {
	entry := recordsv1.ClaimEntry{
		Record: w.name, Nonce: claim.Nonce, From: claim.From, Until: claim.Until, Expires: claim.Expires,
		Deadline: objects.ToMicro(w.site.engine.clock().Add(claimDeadline)),
	}
	err := w.site.updateClaimObject(ctx, claim.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
		if w.site.index.lookup(w.name) != base {
			return nil, errOvertaken
		}
		kept := make([]recordsv1.ClaimEntry, 0, len(entries)+1)
		for _, other := range entries {
			if other.Nonce == claim.Nonce {
				continue
			}
			if other.Record != w.name && overlap(claim.Line, other, entry) {
				active, err := w.site.isActive(ctx, claim.Line, other)
				if err != nil {
					return nil, err
				}
				if !active {
					continue
				}
			}
			kept = append(kept, other)
		}
		return append(kept, entry), nil
	})
	if errors.Is(err, errOvertaken) {
		return errConflict
	}
	return err
}

func overlap(line string, a, b recordsv1.ClaimEntry) bool {
	interval := func(e recordsv1.ClaimEntry) store.Claim {
		return store.Claim{Line: line, From: objects.FromMicro(e.From), Until: objects.FromMicro(e.Until)}
	}
	return interval(a).Overlaps(interval(b))
}

// isActive reports whether an entry of a RecordClaim is an active claim: its owner lists it, or may
// still list it before the deadline. If so, it also returns a *store.ClaimError with the claim. If it
// returns false and no error, the entry may be removed: isActive has changed the owner's Record if
// necessary, so that an unfinished write of the owner fails (fencing). Errors: errConflict if the
// owner's Record has changed in the meantime, and those of objects.StoreError.
func (s *Store) isActive(ctx context.Context, line string, entry recordsv1.ClaimEntry) (bool, error) {
	now := s.engine.clock()
	if expired(entry.Expires, now) {
		return false, nil
	}
	owner, err := s.fetch(ctx, entry.Record)
	if err != nil {
		return false, err
	}
	if owner == nil {
		return false, nil
	}
	if listed := slices.ContainsFunc(owner.Spec.Claims, func(h recordsv1.HeldClaim) bool {
		return h.Nonce == entry.Nonce && !expired(h.Expires, now)
	}); listed || !expired(entry.Deadline, now) {
		return true, &store.ClaimError{
			Claim:  store.Claim{Line: line, From: objects.FromMicro(entry.From), Until: objects.FromMicro(entry.Until), Expires: objects.FromMicro(entry.Expires)},
			Holder: store.Key{Type: owner.Spec.Type, ID: owner.Spec.ID},
		}
	}
	owner.Spec.Fence++
	owner.Spec.Events = deliveries.Carry(owner.Spec.Events, owner.ResourceVersion)
	owner.ManagedFields = objects.NoManagedFields
	meta, err := s.engine.client.Update(ctx, objects.Records, s.namespace, owner.Name, owner)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if apierrors.IsConflict(err) {
		return false, errConflict
	}
	if err != nil {
		return false, objects.StoreError("fence off unfinished writes of record "+owner.Name, err)
	}
	owner.ObjectMeta = meta
	s.applyOwnWrite(owner)
	return false, nil
}

// release removes claims from their RecordClaims. Errors are only logged, because an entry that its
// owner does not list is removed by the next writer with an overlapping claim, or by the sweep.
func (w *write) release(ctx context.Context, claims []recordsv1.HeldClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), objects.Timeout)
	defer cancel()
	for _, claim := range claims {
		err := w.site.updateClaimObject(ctx, claim.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
			return slices.DeleteFunc(entries, func(e recordsv1.ClaimEntry) bool { return e.Nonce == claim.Nonce }), nil
		})
		if err != nil {
			slog.WarnContext(ctx, "cannot release a claim; the next writer that needs the line removes the claim", "namespace", w.site.namespace, "record", w.name, "claim", store.Claim{Line: claim.Line}.Kind(), "error", err)
		}
		w.site.engine.afterStep(StepReleased)
	}
}

func droppedClaims(before, after []recordsv1.HeldClaim) []recordsv1.HeldClaim {
	var gone []recordsv1.HeldClaim
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a recordsv1.HeldClaim) bool { return a.Nonce == b.Nonce }) {
			gone = append(gone, b)
		}
	}
	return gone
}

// errNoChange is the error that the change function of updateClaimObject returns to leave the
// RecordClaim as it is.
var errNoChange = errors.New("nothing to change")

// updateClaimObject applies a change to the entries of a line's RecordClaim, and repeats it after
// conflicts. If no entries remain, it deletes the RecordClaim.
func (s *Store) updateClaimObject(ctx context.Context, line string, change func([]recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error)) error {
	for attempt := 0; ; attempt++ {
		err := s.tryUpdateClaimObject(ctx, line, change)
		if !errors.Is(err, errConflict) {
			return err
		}
		if err := backoff(ctx, attempt); err != nil {
			return err
		}
	}
}

func (s *Store) tryUpdateClaimObject(ctx context.Context, line string, change func([]recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error)) error {
	name := lineName(s.key + "/" + line)
	claimObject := recordsv1.RecordClaim{}
	err := s.engine.client.Get(ctx, objects.Claims, s.namespace, name, &claimObject)
	found := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return objects.StoreError("read the claims on "+store.Claim{Line: line}.Kind(), err)
	}
	before := len(claimObject.Spec.Entries)
	entries, err := change(slices.Clone(claimObject.Spec.Entries))
	if errors.Is(err, errNoChange) || err == nil && before == 0 && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	claimObject.TypeMeta = metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "RecordClaim"}
	claimObject.Name, claimObject.Namespace, claimObject.ManagedFields = name, s.namespace, objects.NoManagedFields
	claimObject.Spec = recordsv1.RecordClaimSpec{SiteKey: s.key, Line: line, Entries: entries}
	switch {
	case len(entries) == 0:
		err = s.engine.client.Delete(ctx, objects.Claims, s.namespace, name, &claimObject.ObjectMeta)
	case found:
		_, err = s.engine.client.Update(ctx, objects.Claims, s.namespace, name, &claimObject)
	default:
		_, err = s.engine.client.Create(ctx, objects.Claims, s.namespace, &claimObject)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || found && apierrors.IsNotFound(err) {
		return errConflict
	}
	if err != nil {
		return objects.StoreError("write the claims on "+store.Claim{Line: line}.Kind(), err)
	}
	return nil
}
