package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// claimDeadline is how long a write may take from entering a claim in a ledger
// to listing it in its Record. Afterwards others may take the claim away.
const claimDeadline = 30 * time.Second

// acquire enters those of the claims that are not held yet into the ledgers of their
// lines. It gives up with errStale when the record turns out to have changed.
func (w *write) acquire(ctx context.Context, claims, held []recordsv1.HeldClaim) error {
	base := w.site.index.lookup(w.name)
	for _, claim := range claims {
		before := slices.IndexFunc(held, func(h recordsv1.HeldClaim) bool { return h.Nonce == claim.Nonce })
		if before >= 0 && !expired(claim.Expires, w.site.engine.clock()) {
			continue
		}
		if err := w.enter(ctx, claim, base); err != nil {
			return err
		}
		if before < 0 {
			w.entered = append(w.entered, claim)
		}
		w.site.engine.afterStep(StepClaims)
	}
	return nil
}

// errOvertaken says that another write of the same record was faster.
var errOvertaken = errors.New("the record was written meanwhile")

func expired(at *metav1.MicroTime, now time.Time) bool {
	return at != nil && !now.Before(at.Time)
}

// enter writes one claim into its ledger by compare-and-swap, as long as the record is
// what it was: of many writers of one record all but one lose, and need not wait for
// their turn at the ledger to learn it.
func (w *write) enter(ctx context.Context, claim recordsv1.HeldClaim, base *recordsv1.Record) error {
	entry := recordsv1.ClaimEntry{
		Record: w.name, Nonce: claim.Nonce, From: claim.From, Until: claim.Until, Expires: claim.Expires,
		Deadline: toMicro(w.site.engine.clock().Add(claimDeadline)),
	}
	err := w.site.changeLedger(ctx, claim.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
		if w.site.index.lookup(w.name) != base {
			return nil, errOvertaken
		}
		kept := make([]recordsv1.ClaimEntry, 0, len(entries)+1)
		for _, other := range entries {
			if other.Nonce == claim.Nonce {
				continue
			}
			if other.Record != w.name && overlap(claim.Line, other, entry) {
				counts, err := w.site.counts(ctx, claim.Line, other)
				if err != nil {
					return nil, err
				}
				if !counts {
					continue
				}
			}
			kept = append(kept, other)
		}
		return append(kept, entry), nil
	})
	if errors.Is(err, errOvertaken) {
		return errStale
	}
	return err
}

func overlap(line string, a, b recordsv1.ClaimEntry) bool {
	interval := func(e recordsv1.ClaimEntry) store.Claim {
		return store.Claim{Line: line, From: fromMicro(e.From), Until: fromMicro(e.Until)}
	}
	return interval(a).Overlaps(interval(b))
}

// counts finds out whether an entry is a claim that must be kept clear of, and
// returns it as a *store.ClaimError. If not, the entry may be dropped: its
// owner's write has been fenced off.
func (s *Site) counts(ctx context.Context, line string, entry recordsv1.ClaimEntry) (bool, error) {
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
			Claim:  store.Claim{Line: line, From: fromMicro(entry.From), Until: fromMicro(entry.Until), Expires: fromMicro(entry.Expires)},
			Holder: store.Key{Type: owner.Spec.Type, ID: owner.Spec.ID},
		}
	}
	owner.Spec.Fence++
	owner.ManagedFields = noManagedFields
	meta, err := s.engine.client.update(ctx, recordsResource, s.namespace, owner.Name, owner)
	if isNotFound(err) {
		return false, nil
	}
	if apierrors.IsConflict(err) {
		return false, errStale
	}
	if err != nil {
		return false, storeError("fence record "+owner.Name, err)
	}
	owner.ObjectMeta = meta
	s.take(owner)
	return false, nil
}

// release takes claims out of their ledgers. It is a courtesy: an entry that its
// owner does not list is dropped by whoever meets it.
func (w *write) release(ctx context.Context, claims []recordsv1.HeldClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	for _, claim := range claims {
		err := w.site.changeLedger(ctx, claim.Line, func(entries []recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error) {
			return slices.DeleteFunc(entries, func(e recordsv1.ClaimEntry) bool { return e.Nonce == claim.Nonce }), nil
		})
		if err != nil {
			slog.WarnContext(ctx, "release of a claim is left to its next contender", "record", w.name, "line", claim.Line, "error", err)
		}
		w.site.engine.afterStep(StepReleased)
	}
}

// dropped lists the claims held before that are not held after.
func dropped(before, after []recordsv1.HeldClaim) []recordsv1.HeldClaim {
	var gone []recordsv1.HeldClaim
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a recordsv1.HeldClaim) bool { return a.Nonce == b.Nonce }) {
			gone = append(gone, b)
		}
	}
	return gone
}

// errNothingToChange is what a change of a ledger returns to leave it as it is.
var errNothingToChange = errors.New("nothing to change")

// changeLedger applies a change to the entries of a line until no other writer
// comes in between. A ledger without entries is removed.
func (s *Site) changeLedger(ctx context.Context, line string, change func([]recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error)) error {
	for attempt := 0; ; attempt++ {
		err := s.changeLedgerOnce(ctx, line, change)
		if !errors.Is(err, errStale) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

func (s *Site) changeLedgerOnce(ctx context.Context, line string, change func([]recordsv1.ClaimEntry) ([]recordsv1.ClaimEntry, error)) error {
	name := lineName(s.key + "/" + line)
	ledger := recordsv1.RecordClaim{}
	err := s.engine.client.get(ctx, claimsResource, s.namespace, name, &ledger)
	found := err == nil
	if err != nil && !isNotFound(err) {
		return storeError("read ledger of "+line, err)
	}
	before := len(ledger.Spec.Entries)
	entries, err := change(slices.Clone(ledger.Spec.Entries))
	if errors.Is(err, errNothingToChange) || err == nil && before == 0 && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	ledger.TypeMeta = metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "RecordClaim"}
	ledger.Name, ledger.Namespace, ledger.ManagedFields = name, s.namespace, noManagedFields
	ledger.Spec = recordsv1.RecordClaimSpec{SiteKey: s.key, Line: line, Entries: entries}
	switch {
	case len(entries) == 0:
		err = s.engine.client.delete(ctx, claimsResource, s.namespace, name, &ledger.ObjectMeta)
	case found:
		_, err = s.engine.client.update(ctx, claimsResource, s.namespace, name, &ledger)
	default:
		_, err = s.engine.client.create(ctx, claimsResource, s.namespace, &ledger)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || found && isNotFound(err) {
		return errStale
	}
	if err != nil {
		return storeError(fmt.Sprintf("write ledger of %s", line), err)
	}
	return nil
}
