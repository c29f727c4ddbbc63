package sites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/move"
	"github.com/paddock-health/paddock/apiserver/store"
)

// copyServing copies the records while the Site serves writes. The first pass copies most of them. The
// next passes compare all records while both storages log changes. The last passes compare only the
// records that have changed since the pass before. Each of these two series ends when a pass finds few
// differences (settledChanges), or after maxPasses. So the length of the pause of writes usually does not
// depend on the number of records.
func (m *mover) copyServing(ctx context.Context, copier *move.Copier) error {
	if _, err := m.compareOnce(ctx, copier); err != nil {
		return err
	}
	if err := copier.LogChanges(ctx); err != nil {
		return err
	}
	last, err := m.compareAll(ctx, copier)
	if err != nil {
		return err
	}
	for range maxPasses {
		if last, err = m.compareChanged(ctx, copier); err != nil {
			return err
		}
		if last.Changed() <= settledChanges {
			break
		}
	}
	done := m.progress(last)
	done.Done = true
	return m.report(ctx, done)
}

// compareOnce makes a pass of all records.
func (m *mover) compareOnce(ctx context.Context, copier *move.Copier) (move.Pass, error) {
	m.pass++
	pass, err := copier.Run(ctx)
	m.copied += pass.Copied
	return pass, err
}

// compareAll makes passes of all records until one copies and removes at most settledChanges, or up to
// maxPasses. It sets the marks to the beginning of the last pass.
func (m *mover) compareAll(ctx context.Context, copier *move.Copier) (pass move.Pass, err error) {
	for range maxPasses {
		marks, err := copier.Mark(ctx)
		if err != nil {
			return pass, err
		}
		if pass, err = m.compareOnce(ctx, copier); err != nil {
			return pass, err
		}
		m.digest = pass.Digest
		m.setMarks(marks, pass.Newest)
		if pass.Changed() <= settledChanges {
			break
		}
	}
	return pass, nil
}

// compareChanged makes a pass of the records that have changed since the marks. Without an error, it
// sets the marks to the beginning of this pass. Errors: store.ErrChangesLost, and those of
// move.Copier.
func (m *mover) compareChanged(ctx context.Context, copier *move.Copier) (move.Pass, error) {
	m.pass++
	pass, next, err := copier.RunChanged(ctx, move.Marks{Source: m.marks.Source, Target: m.marks.Target})
	m.copied += pass.Copied
	if err == nil {
		m.setMarks(next, pass.Newest)
	}
	return pass, err
}

// setMarks sets the marks. newest is the time of the latest version among the records that were
// compared since the previous marks. Latest never becomes earlier.
func (m *mover) setMarks(marks move.Marks, newest time.Time) {
	var latest *metav1.MicroTime
	if m.marks != nil {
		latest = m.marks.Latest
	}
	if !newest.IsZero() && (latest == nil || newest.After(latest.Time)) {
		latest = &metav1.MicroTime{Time: newest}
	}
	m.marks = &sitesv1.MoveMarks{Source: marks.Source, Target: marks.Target, Latest: latest}
}

// catchUp copies the last changes and the pending deliveries during the pause of writes. It reports
// the phase as done when nothing that has changed since the comparison of all records differs, and the
// numbers of records are equal (equalCounts). If that cannot be achieved without a comparison of all
// records, it reports that changes are lost.
func (m *mover) catchUp(ctx context.Context, copier *move.Copier, other store.Store, renamed webhookNames) error {
	for _, storage := range []store.Store{copier.Source, copier.Target} {
		if synchronizer, behind := storage.(store.Synchronizer); behind {
			if err := synchronizer.Synchronize(ctx); err != nil {
				return err
			}
		}
	}
	last, err := m.compareRest(ctx, copier)
	if errors.Is(err, store.ErrChangesLost) {
		return m.report(ctx, sitesv1.MoveCopy{ChangesLost: true})
	}
	if err != nil {
		return err
	}
	done := m.progress(last)
	if done.Deliveries, err = m.copyPending(ctx, other, renamed); err != nil {
		return err
	}
	counts, err := m.equalCounts(ctx, copier)
	if errors.Is(err, store.ErrChangesLost) {
		return m.report(ctx, sitesv1.MoveCopy{ChangesLost: true})
	}
	if err != nil {
		return err
	}
	if latest := m.marks.Latest; latest != nil {
		if err := awaitClock(ctx, copier.Target, latest.Time); err != nil {
			return err
		}
	}
	done.Done, done.Records, done.Tombstones = true, counts.Records, counts.Tombstones
	return m.report(ctx, done)
}

// compareRest makes passes of changed records until nothing differs. If it is not known which records
// have changed, it compares all, unless they are too many. Errors: store.ErrChangesLost if they are,
// store.ErrUnavailable if the storages still differ after maxPasses.
func (m *mover) compareRest(ctx context.Context, copier *move.Copier) (pass move.Pass, err error) {
	for range maxPasses {
		if m.marks == nil {
			err = store.ErrChangesLost
		} else {
			pass, err = m.compareChanged(ctx, copier)
		}
		if errors.Is(err, store.ErrChangesLost) {
			pass, err = m.compareFew(ctx, copier)
		}
		if err != nil || pass.Changed() == 0 {
			return pass, err
		}
	}
	return pass, fmt.Errorf("the storages of the move still differ in %d records after %d passes: %w", pass.Changed(), m.pass, store.ErrUnavailable)
}

// compareFew compares all records, while both storages log changes. Errors: store.ErrChangesLost if
// the records are too many for a pause of writes (maxPausedRecords).
func (m *mover) compareFew(ctx context.Context, copier *move.Copier) (move.Pass, error) {
	switch counts, err := copier.Source.Count(ctx); {
	case errors.Is(err, store.ErrQueryTimeout) || err == nil && counts.Records+counts.Tombstones > maxPausedRecords:
		return move.Pass{}, store.ErrChangesLost
	case err != nil:
		return move.Pass{}, err
	}
	if err := copier.LogChanges(ctx); err != nil {
		return move.Pass{}, err
	}
	return m.compareAll(ctx, copier)
}

// equalCounts compares the numbers of records of both storages, and returns them. If one of the
// storages cannot count its records in time, nothing is compared and the numbers are zero. Errors:
// store.ErrChangesLost if the numbers differ.
func (m *mover) equalCounts(ctx context.Context, copier *move.Copier) (store.Counts, error) {
	var source, target store.Counts
	var group errgroup.Group // without a context: to cancel a count would end its session
	group.Go(func() (err error) { source, err = copier.Source.Count(ctx); return err })
	group.Go(func() (err error) { target, err = copier.Target.Count(ctx); return err })
	switch err := group.Wait(); {
	case errors.Is(err, store.ErrQueryTimeout):
		slog.WarnContext(ctx, "the move does not compare the numbers of records of its storages, because they cannot be counted in time", "site", m.held.name(), "move", m.reference.Name)
		return store.Counts{}, nil
	case err != nil:
		return store.Counts{}, err
	case source != target:
		slog.ErrorContext(ctx, "the storages of a move have different numbers of records; all records must be compared again", "site", m.held.name(), "move", m.reference.Name, "source", source, "target", target)
		return store.Counts{}, store.ErrChangesLost
	}
	return source, nil
}
