// Package move copies the records of a site from one storage to another, while the site is served from
// the first one. It compares both storages and copies what differs, so that a copy that was
// interrupted continues where it ended. After a comparison of all records, it compares only those that
// have changed since, in either storage. It knows no engine and no cluster. See
// docs/decisions/0024-site-moves.md.
package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Storage is a storage from which or to which a site is moved.
type Storage interface {
	store.Store
	store.Archive
	store.ChangeLog
}

const (
	// headPage is the maximum number of heads (newest versions) that are read at a time, from each
	// storage.
	headPage = 5000
	// batchRecords and batchBytes limit the records that are copied at a time. The bytes are a
	// threshold, as in store.DumpQuery.
	batchRecords, batchBytes = 500, 4 << 20
	// batchTimeout is the time limit for copying a batch, and for removing a record. At the limit the
	// pass fails. A process that was stopped for longer therefore does not write what it read before.
	batchTimeout = 30 * time.Second
	// ignoredClaims is the remaining lifetime below which a claim is not compared, because it may expire
	// between the reads of both storages.
	ignoredClaims = 10 * time.Second
	// maxAttempts is the maximum number of times that a flush copies a record again, because another
	// record holds one of its claims, or because its histories in both storages have diverged. At the
	// limit, the pass fails.
	maxAttempts = 10
)

// Copier copies the records of a site from Source to Target. It is not safe for concurrent use.
type Copier struct {
	// Source is the storage that serves the site. Target is the storage to copy to. Only the Copier
	// may write to Target.
	Source, Target Storage
	// Report is called with the state of the pass: after every 5000 compared records, after each batch
	// of copies, and at the end of the pass. It must not be nil.
	Report func(Pass)
	// incomplete has the records of which the source counts more superseded versions than it returns, by
	// key, with the newest versionId. Until such a record changes, it does not count as lacking versions
	// in the target.
	incomplete map[store.Key]int64
}

// Pass is the state or the result of one pass of a Copier.
type Pass struct {
	// Compared is the number of records compared so far, tombstones and removed records included.
	Compared int64
	// Copied is the number of records that differed and were copied. Removed is the number of records
	// that were removed from the target because the source does not have them.
	Copied, Removed int64
	// Newest is the time of the latest version in the source among the records compared.
	Newest time.Time
	// Digest is the SHA-256 of the newest versions, without bodies, of the records compared in the source.
	// It is empty until the pass ends.
	Digest string
}

// Changed returns the number of records that differed and were copied or removed.
func (p *Pass) Changed() int64 { return p.Copied + p.Removed }

// DifferentError means that a record, after it was copied, has other versions in the target than in
// the source.
type DifferentError struct{ Key store.Key }

func (e *DifferentError) Error() string {
	return fmt.Sprintf("the copy of %s/%s in the target storage differs from the record in the source storage", e.Key.Type, e.Key.ID)
}

// Run makes one pass: it compares all records and copies those that differ. Errors: *DifferentError,
// *store.LimitError, and those of store.Archive.
func (c *Copier) Run(ctx context.Context) (Pass, error) {
	return c.pass(ctx, newHeads(c.Source), newHeads(c.Target))
}

// Marks are positions in the change logs of both storages, as store.ChangeLog.Mark returns them.
type Marks struct{ Source, Target string }

// LogChanges begins the change logs of both storages.
func (c *Copier) LogChanges(ctx context.Context) error {
	return errors.Join(c.Source.LogChanges(ctx), c.Target.LogChanges(ctx))
}

// Mark marks the logs of changes of both storages. RunChanged with these marks compares the records
// that have changed after Mark, so a Run that begins after Mark and RunChanged together compare
// everything. Errors: those of store.ChangeLog.
func (c *Copier) Mark(ctx context.Context) (marks Marks, err error) {
	if marks.Source, err = c.Source.Mark(ctx); err == nil {
		marks.Target, err = c.Target.Mark(ctx)
	}
	return marks, err
}

// RunChanged makes a pass of the records that have changed in either storage since the marks. A
// change in the target may be a copy by an earlier pass. RunChanged returns the marks for the next
// call. A pass that copied and removed nothing shows that both storages are the same, if all
// records were compared since the marks and the source no longer changes. Errors: those of Run and
// of store.ChangeLog.
func (c *Copier) RunChanged(ctx context.Context, since Marks) (Pass, Marks, error) {
	next, err := c.Mark(ctx)
	if err != nil {
		return Pass{}, since, err
	}
	inSource, err := c.Source.ChangedSince(ctx, since.Source)
	if err != nil {
		return Pass{}, since, err
	}
	inTarget, err := c.Target.ChangedSince(ctx, since.Target)
	if err != nil {
		return Pass{}, since, err
	}
	keys := slices.Concat(inSource, inTarget)
	slices.SortFunc(keys, store.Key.Compare)
	keys = slices.CompactFunc(keys, func(a, b store.Key) bool { return a.Compare(b) == 0 })
	pass, err := c.pass(ctx, newHeadsOf(c.Source, keys), newHeadsOf(c.Target, keys))
	return pass, next, err
}

// pass compares records and copies those that differ.
func (c *Copier) pass(ctx context.Context, source, target *heads) (Pass, error) {
	r := &run{Copier: c, began: time.Now(), source: source, target: target, digest: sha256.New(), lacking: map[store.Key]int64{}}
	for {
		more, err := r.step(ctx)
		if err != nil {
			return r.state, err
		}
		if !more || len(r.changed) >= batchRecords || len(r.removed) >= batchRecords {
			if err := r.flush(ctx); err != nil {
				return r.state, err
			}
			c.Report(r.state)
		}
		if !more {
			r.state.Digest = hex.EncodeToString(r.digest.Sum(nil))
			return r.state, nil
		}
	}
}

// run is one pass.
type run struct {
	*Copier
	state          Pass
	began          time.Time
	source, target *heads
	digest         hash.Hash
	// changed are the records to copy, removed those to remove from the target.
	changed []difference
	removed []store.Key
	// lacking has the records in changed whose superseded versions the target lacks, with the number of
	// superseded versions that the source counts.
	lacking map[store.Key]int64
}

// step compares the next record of both storages. It reports false if there is none.
func (r *run) step(ctx context.Context) (more bool, err error) {
	source, err := r.source.peek(ctx)
	if err != nil {
		return false, err
	}
	target, err := r.target.peek(ctx)
	if err != nil {
		return false, err
	}
	if source == nil && target == nil {
		return false, nil
	}
	order := -1
	switch {
	case source == nil:
		order = 1
	case target != nil:
		order = source.Key.Compare(target.Key)
	}
	if order <= 0 {
		r.source.next()
		r.add(source.Newest())
	}
	if order >= 0 {
		r.target.next()
	}
	if r.state.Compared++; r.state.Compared%headPage == 0 {
		r.Report(r.state)
	}
	switch {
	case order > 0:
		r.removed = append(r.removed, target.Key)
	case order < 0:
		r.changed = append(r.changed, difference{key: source.Key})
	default:
		return true, r.compareHeads(ctx, source, target)
	}
	return true, nil
}

// compareHeads compares a record that both storages have. If the target has later versions, or lacks
// superseded versions that the source has, the record is removed from the target, so that it is copied
// with all versions.
func (r *run) compareHeads(ctx context.Context, source, target *store.Dumped) error {
	from, to := source.Newest(), target.Newest()
	missing := from.Version - to.Version
	lacks := r.Target.KeepsVersions() && target.Superseded+max(0, missing) < source.Superseded && r.incomplete[source.Key] != from.Version
	switch {
	case lacks || missing < 0:
		if err := r.purge(ctx, target); err != nil {
			return err
		}
		if lacks {
			r.lacking[source.Key] = source.Superseded
		}
		r.changed = append(r.changed, difference{key: source.Key})
	case !store.SameHead(from, to, r.began.Add(ignoredClaims)):
		r.changed = append(r.changed, difference{key: source.Key, oldest: to.Version})
	}
	return nil
}

// add adds a head of the source to the state of the pass.
func (r *run) add(head *store.Record) {
	if head.Updated.After(r.state.Newest) {
		r.state.Newest = head.Updated
	}
	_, _ = fmt.Fprintf(r.digest, "%q %q %d %d %d %t %q %d %q", head.Key.Type, head.Key.ID, head.Version,
		head.Created.UnixMilli(), head.Updated.UnixMilli(), head.Deleted, head.Method, head.MetadataVersion, head.Metadata)
	for _, claim := range store.ActiveClaims(head.Claims, r.began.Add(ignoredClaims)) {
		_, _ = fmt.Fprintf(r.digest, " %q %d %d %d", claim.Line, claim.From.UnixMicro(), claim.Until.UnixMicro(), claim.Expires.UnixMicro())
	}
	_, _ = fmt.Fprintln(r.digest)
}

// flush removes the records that the source does not have, and copies those that differ.
func (r *run) flush(ctx context.Context) error {
	for _, key := range r.removed {
		if err := r.remove(ctx, key, true); err != nil {
			return err
		}
		r.state.Removed++
	}
	r.removed = nil
	attempts := map[store.Key]int{}
	for len(r.changed) > 0 {
		n := min(len(r.changed), batchRecords)
		again, err := r.copy(ctx, r.changed[:n])
		if err != nil {
			return err
		}
		r.changed = r.changed[n:]
		for _, key := range again {
			if attempts[key]++; attempts[key] > maxAttempts {
				return fmt.Errorf("copy %s/%s: its claims or its history still conflict with the target storage after %d attempts: %w", key.Type, key.ID, maxAttempts, store.ErrUnavailable)
			}
			r.changed = append(r.changed, difference{key: key})
		}
	}
	r.changed = nil
	return nil
}

// remove removes a record of the target, without events. With erase, the target also loses the
// deliveries about the record, which it has if it served the site before.
func (r *run) remove(ctx context.Context, key store.Key, erase bool) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	_, err := r.Target.Write(ctx, []store.Op{{Kind: store.Purge, Key: key, Erase: erase}})
	return err
}

// purge removes a record of the target so that it can be copied with all versions. If the record was
// purged in the source and another record uses its id, the target also loses the deliveries about the
// purged record.
func (r *run) purge(ctx context.Context, head *store.Dumped) error {
	purged, err := IsPurged(ctx, r.Source, head)
	if err != nil {
		return err
	}
	return r.remove(ctx, head.Key, purged)
}

// purgeKey is like purge, for a record whose head has not been read. It does nothing if the target
// does not have the record.
func (r *run) purgeKey(ctx context.Context, key store.Key) error {
	head, err := newHeadsOf(r.Target, []store.Key{key}).peek(ctx)
	if err != nil || head == nil {
		return err
	}
	return r.purge(ctx, head)
}

// IsPurged reports whether a storage has purged a record whose head another storage has. It is true
// if the storage has no record with the key, or if the oldest version there was created after the
// newest version of head was written. In a storage that has dropped the oldest versions, a record
// that was deleted and created again therefore also counts as purged. Errors: those of
// store.Archive.Dump.
func IsPurged(ctx context.Context, storage Storage, head *store.Dumped) (bool, error) {
	page, err := storage.Dump(ctx, store.DumpQuery{Keys: []store.Key{head.Key}, MaxRecords: 1, MaxBytes: batchBytes})
	if err != nil {
		return false, err
	}
	return len(page.Records) == 0 || page.Records[0].Versions[0].Created.After(head.Newest().Updated), nil
}

// copy copies records, and compares the copies with what was read. It returns the keys of those that
// must be copied again.
func (r *run) copy(ctx context.Context, changed []difference) (again []store.Key, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	query := versionsOf(sorted(changed))
	for more := true; more; {
		page, err := r.Source.Dump(ctx, query)
		if err != nil {
			return nil, err
		}
		if more = page.More && len(page.Records) > 0; more {
			query.After = page.Records[len(page.Records)-1].Key
		}
		for i := range page.Records {
			d := &page.Records[i]
			if counted, lacks := r.lacking[d.Key]; lacks && int64(len(d.Versions)) <= counted {
				r.setIncomplete(d.Key, d.Newest().Version)
			}
		}
		failed, err := r.restore(ctx, page.Records)
		if err != nil {
			return nil, err
		}
		again = append(again, failed...)
	}
	return again, nil
}

func (c *Copier) setIncomplete(key store.Key, version int64) {
	if c.incomplete == nil {
		c.incomplete = map[store.Key]int64{}
	}
	c.incomplete[key] = version
}

// restore stores records in the target, and compares those of which the target keeps all versions. It
// returns the keys of records that must be copied again: those whose histories have diverged, those
// whose claims another record of the target holds, and that other record, which has given up the claim
// in the source. It removes the diverged record and the other record from the target.
func (r *run) restore(ctx context.Context, records []store.Dumped) (again []store.Key, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	results, err := r.Target.Restore(ctx, records)
	if err != nil {
		return nil, err
	}
	var stored []store.Dumped
	for i, result := range results {
		key := records[i].Key
		var diverged *store.DivergedError
		var claim *store.ClaimError
		switch {
		case result.Err == nil && result.Dropped == 0:
			stored = append(stored, records[i])
			r.state.Copied++
		case result.Err == nil: // the target keeps fewer versions
			r.state.Copied++
		case errors.As(result.Err, &diverged):
			// The source no longer has the versions between those of the target and those that were read.
			if err := r.purgeKey(ctx, key); err != nil {
				return nil, err
			}
			again = append(again, key)
		case errors.As(result.Err, &claim):
			if err := r.purgeKey(ctx, claim.Holder); err != nil {
				return nil, err
			}
			again = append(again, key, claim.Holder)
		default:
			return nil, fmt.Errorf("copy %s/%s: %w", key.Type, key.ID, result.Err)
		}
	}
	// The holder of a claim may have been stored before it was removed.
	stored = slices.DeleteFunc(stored, func(d store.Dumped) bool { return slices.Contains(again, d.Key) })
	return again, r.compare(ctx, stored)
}

// compare compares the versions of records with those that the target returns. Errors:
// *DifferentError.
func (r *run) compare(ctx context.Context, stored []store.Dumped) error {
	copied := make([]difference, len(stored))
	for i := range stored {
		copied[i] = difference{stored[i].Key, stored[i].Versions[0].Version}
	}
	query := versionsOf(copied)
	for next := 0; next < len(stored); {
		page, err := r.Target.Dump(ctx, query)
		if err != nil {
			return err
		}
		if len(page.Records) == 0 {
			return &DifferentError{stored[next].Key}
		}
		for i := range page.Records {
			if !hasVersions(&page.Records[i], &stored[next]) {
				return &DifferentError{stored[next].Key}
			}
			next++
		}
		query.After = stored[next-1].Key
	}
	return nil
}

// hasVersions reports whether a copy has all versions of a record, and no newer one.
func hasVersions(copied, record *store.Dumped) bool {
	if copied.Key != record.Key || len(copied.Versions) < len(record.Versions) {
		return false
	}
	older := len(copied.Versions) - len(record.Versions)
	for i := range record.Versions {
		if !store.SameVersion(&copied.Versions[older+i], &record.Versions[i]) {
			return false
		}
	}
	return true
}
