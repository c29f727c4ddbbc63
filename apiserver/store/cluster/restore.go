package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// restorers is the maximum number of records that one call restores at a time.
const restorers = 8

// Restore implements store.Archive. Each record is stored on its own, up to 8 at a time. The limits of
// the site apply: the oldest versions beyond MaxVersions and MaxObjectBytes are dropped. At MaxBytes,
// Restore makes room as a write does.
func (s *Store) Restore(ctx context.Context, records []store.Dumped) ([]store.Restored, error) {
	if !s.engine.isSynced() {
		return nil, store.ErrNotReady
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	results := make([]store.Restored, len(records))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(restorers)
	for i := range records {
		group.Go(func() error {
			result, err := s.restore(groupCtx, &records[i])
			if isOfRecord(err) {
				result, err = store.Restored{Err: err}, nil
			}
			results[i] = result
			return err
		})
	}
	return results, group.Wait()
}

// KeepsVersions implements store.Archive.
func (s *Store) KeepsVersions() bool { return false }

// isOfRecord reports whether an error concerns only one record, so that the other records can be
// restored.
func isOfRecord(err error) bool {
	return err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrMoving) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// restore restores a record. Errors: those of store.Restored, store.ErrMoving, store.ErrUnavailable.
func (s *Store) restore(ctx context.Context, d *store.Dumped) (store.Restored, error) {
	if err := d.Check(); err != nil {
		return store.Restored{}, err
	}
	w := &write{site: s, op: store.Op{Kind: store.Put, Key: d.Key}, name: recordName(d.Key)}
	for attempt := 0; ; attempt++ {
		current, err := s.fetch(ctx, w.name)
		if err == nil {
			err = s.admit(ctx)
		}
		if err != nil {
			return store.Restored{}, err
		}
		result, err := w.restore(ctx, d, current)
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled) {
			w.release(ctx, droppedClaims(w.entered, w.listed))
		}
		if !errors.Is(err, errConflict) {
			return result, err
		}
		w.entered = nil
		if err := backoff(ctx, attempt+1); err != nil {
			return store.Restored{}, err
		}
	}
}

// restore makes one attempt. Errors: errConflict, and those of Store.restore.
func (w *write) restore(ctx context.Context, d *store.Dumped, current *recordsv1.Record) (store.Restored, error) {
	if current != nil && current.Spec.Purging {
		if err := w.site.finishPurge(ctx, current); err != nil {
			return store.Restored{}, err
		}
		if current.Spec.HasEvents {
			return store.Restored{}, fmt.Errorf("restore record %s: events of the purged record wait for the delivery process: %w", w.name, store.ErrUnavailable)
		}
		return store.Restored{}, errConflict
	}
	var record *store.Record
	if current != nil {
		found := toRecord(current)
		record = &found
	}
	if d.IsOlder(record) {
		return store.Restored{}, w.checkOlder(ctx, d)
	}
	missing, changed, err := d.Missing(record, w.site.engine.clock())
	if err != nil || len(missing) == 0 && !changed {
		return store.Restored{}, err
	}
	p := plan{Decision: store.Decision{Action: store.ActionCreate, Outcome: store.Created}}
	var before usage
	if current != nil {
		p.Action, p.Outcome = store.ActionUpdate, store.Updated
		p.carried = deliveries.Carry(current.Spec.Events, current.ResourceVersion)
		before = usageOf(&current.Spec)
	}
	r := w.site.restored(d, current, missing)
	p.next = r.next
	p.next.Events = p.carried
	if err := w.checkLimits(ctx, &p, before); err != nil {
		return store.Restored{}, err
	}
	result := store.Restored{Outcome: p.Outcome, Dropped: r.listed - len(p.next.History)}
	if current == nil {
		if err := w.site.writeRestoredHistory(ctx, w.name, &p.next, r.past); err != nil {
			return store.Restored{}, err
		}
		_, err := w.create(ctx, p, nil)
		return result, err
	}
	if err := w.acquire(ctx, p.next.Claims, current.Spec.Claims); err != nil {
		return store.Restored{}, err
	}
	if err := w.site.writeRestoredHistory(ctx, w.name, &p.next, r.past); err != nil {
		return store.Restored{}, err
	}
	if _, err := w.put(ctx, p, w.object(p.next, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID}), true); err != nil {
		return store.Restored{}, err
	}
	w.release(ctx, droppedClaims(current.Spec.Claims, p.next.Claims))
	return result, nil
}

// checkOlder checks that the stored record has the newest version of an older dump.
func (w *write) checkOlder(ctx context.Context, d *store.Dumped) error {
	past, err := w.site.GetVersion(ctx, d.Key, d.Newest().Version)
	if errors.Is(err, store.ErrNotFound) || err == nil && !store.SameVersion(d.Newest(), &past) {
		return &store.DivergedError{Key: d.Key, Version: d.Newest().Version}
	}
	return err
}

// restoredRecord is a record to restore, as the engine stores it.
type restoredRecord struct {
	next recordsv1.RecordSpec
	// past are the superseded versions that the RecordHistory lacks, by versionKey. A nil value removes a
	// version from the RecordHistory.
	past map[string]*recordsv1.SupersededVersion
	// listed is the number of superseded versions, including those that the limits drop.
	listed int
}

// restored returns the state of a record after the missing versions, and the metadata and active claims
// of d, were added to current. current is nil for a new record.
func (s *Store) restored(d *store.Dumped, current *recordsv1.Record, missing []store.Record) restoredRecord {
	r := restoredRecord{next: recordsv1.RecordSpec{Type: d.Key.Type, ID: d.Key.ID}, past: map[string]*recordsv1.SupersededVersion{}}
	if current != nil {
		r.next = current.Spec
		r.next.HistoryUpdated, r.next.HistoryDeletions = slices.Clone(r.next.HistoryUpdated), slices.Clone(r.next.HistoryDeletions)
		r.next.History, r.next.HistoryLabels = slices.Clone(r.next.History), slices.Clone(r.next.HistoryLabels)
		if len(missing) > 0 {
			r.past = droppedVersions(&current.Spec)
		}
	}
	r.listed = len(r.next.History)
	for i := range missing {
		r.add(s.index, &missing[i])
	}
	newest, next := d.Newest(), &r.next
	next.SiteKey, next.Write = s.key, newID()
	next.Metadata, next.MetadataVersion = string(newest.Metadata), newest.MetadataVersion
	next.Claims = heldClaims(store.ActiveClaims(newest.Claims, s.engine.clock()), next.Claims, newID)
	if len(missing) > 0 {
		kept := s.limits.trimHistory(next.History, next)
		next.HistoryDropped = len(next.History) - len(kept)
		next.History = kept
		next.HistoryUpdated, next.HistoryLabels = newestOf(next.HistoryUpdated, len(kept)), newestOf(next.HistoryLabels, len(kept))
		oldest := next.Version - int64(len(kept))
		next.HistoryDeletions = slices.DeleteFunc(next.HistoryDeletions, func(number int64) bool { return number < oldest })
		for number, past := range r.past {
			if past != nil && (len(kept) == 0 || !isKept(number, oldest)) {
				delete(r.past, number)
			}
		}
	}
	return r
}

// isKept reports whether a key of versionKey is that of the version oldest or a later one.
func isKept(number string, oldest int64) bool {
	first := versionKey(oldest)
	return len(number) > len(first) || len(number) == len(first) && strings.Compare(number, first) >= 0
}

// add makes v the newest version. The one before it becomes a superseded version.
func (r *restoredRecord) add(x *index, v *store.Record) {
	next := &r.next
	labels := ""
	if next.Version > 0 {
		past := supersede(next)
		r.past[versionKey(next.Version)] = &past
		if next.Version+1 < v.Version { // versions in between are missing, so older versions cannot be listed
			r.past = map[string]*recordsv1.SupersededVersion{}
			next.History, next.HistoryUpdated, next.HistoryDeletions, next.HistoryLabels = nil, nil, nil, nil
		} else {
			labels = next.Labels
			if !next.Deleted {
				labels = encodeLabels(x.extractor.Labels(next.Type, x.extractor.Extract(next.Type, []byte(next.Body))))
			}
			next.History = append(next.History, supersededSize(&past))
			next.HistoryUpdated = append(next.HistoryUpdated, next.Updated.UnixMilli())
			next.HistoryLabels = append(next.HistoryLabels, labels)
			if next.Deleted {
				next.HistoryDeletions = append(next.HistoryDeletions, next.Version)
			}
		}
		r.listed++
	}
	if next.UID == "" || !v.Created.Equal(next.Created.Time) {
		next.UID = newID()
	}
	if next.Lineage == "" {
		next.Lineage = next.UID
	}
	if next.Labels = ""; v.Deleted {
		next.Labels = labels
	}
	next.Version, next.Method, next.Deleted = v.Version, string(v.Method), v.Deleted
	next.Created, next.Updated = metav1.NewMicroTime(v.Created), metav1.NewMicroTime(v.Updated)
	next.Body, next.IDOffset, next.MetaOffset = string(v.Body.JSON), v.Body.IDOffset, v.Body.MetaOffset
}

// writeRestoredHistory adds superseded versions to the RecordHistory of a record. Readers ignore
// them until the Record lists them. It is idempotent.
func (s *Store) writeRestoredHistory(ctx context.Context, record string, next *recordsv1.RecordSpec, past map[string]*recordsv1.SupersededVersion) error {
	if len(past) == 0 {
		return nil
	}
	owner := &recordsv1.Record{ObjectMeta: metav1.ObjectMeta{Name: record}, Spec: *next}
	name := objects.HistoryName(owner)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"managedFields": objects.NoManagedFields},
		"spec":     map[string]any{"versions": past},
	})
	if err != nil {
		return fmt.Errorf("encode history %s: %w", name, err)
	}
	_, err = s.engine.client.MergePatch(ctx, objects.Histories, s.namespace, name, patch)
	if apierrors.IsNotFound(err) {
		history := s.newHistory(name, owner, recordsv1.SupersededVersion{})
		history.Spec.Versions = map[string]recordsv1.SupersededVersion{}
		for number, version := range past {
			if version != nil {
				history.Spec.Versions[number] = *version
			}
		}
		_, err = s.engine.client.Create(ctx, objects.Histories, s.namespace, history)
	}
	if apierrors.IsAlreadyExists(err) {
		return errConflict
	}
	return objects.StoreError("write history "+name, err)
}
