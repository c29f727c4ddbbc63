// Package move copies the data of a site from one storage to another, while the site is served from
// the first one. It compares both storages and copies what differs, so that a copy that was
// interrupted continues where it ended. It knows no engine and no cluster. See
// docs/decisions/0024-site-moves.md.
package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Storage is a storage from which or to which a site is moved.
type Storage interface {
	store.Store
	store.Archive
}

const (
	// headPage is the number of heads that are read at a time, from each storage.
	headPage = 5000
	// batchRecords and batchBytes limit the records that are copied at a time. The bytes are a
	// threshold, as in store.DumpQuery.
	batchRecords, batchBytes = 500, 4 << 20
	// batchTimeout is the time limit for copying a batch. A process that was stopped for longer does
	// not go on with what it read before.
	batchTimeout = 30 * time.Second
	// ignoredClaims is the remaining life of claims below which they are not compared, because they may
	// expire between the reads of both storages.
	ignoredClaims = 10 * time.Second
	// maxAttempts is the maximum number of attempts to copy a record whose claims other records hold.
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
}

// Pass is the state or the result of one pass of a Copier.
type Pass struct {
	// Compared is the number of records compared so far, tombstones included.
	Compared int64
	// Copied is the number of records that differed and were copied. Removed is the number of records
	// that were removed from the target because the source does not have them.
	Copied, Removed int64
	// Records and Tombstones are the numbers of live records and of tombstones in the source.
	Records, Tombstones int64
	// Newest is the time of the latest version in the source.
	Newest time.Time
	// Source and Target are digests of the newest versions of all records of the storages, without
	// bodies, as the pass compared them. Both are empty until the pass ends. They are equal if no record
	// was copied or removed.
	Source, Target string
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
	r := &run{Copier: c, began: time.Now(), source: newHeads(c.Source), target: newHeads(c.Target), digests: [2]hash.Hash{sha256.New(), sha256.New()}}
	for {
		more, err := r.step(ctx)
		if err != nil {
			return r.pass, err
		}
		if !more || len(r.changed) >= batchRecords || len(r.removed) >= batchRecords {
			if err := r.flush(ctx); err != nil {
				return r.pass, err
			}
			c.Report(r.pass)
		}
		if !more {
			r.pass.Source, r.pass.Target = hex.EncodeToString(r.digests[0].Sum(nil)), hex.EncodeToString(r.digests[1].Sum(nil))
			return r.pass, nil
		}
	}
}

// run is one pass.
type run struct {
	*Copier
	pass           Pass
	began          time.Time
	source, target *heads
	digests        [2]hash.Hash
	// changed are the records to copy, removed those to remove from the target.
	changed, removed []store.Key
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
		r.pass.Compared++
		r.count(source)
		r.digest(0, source)
		if r.pass.Compared%headPage == 0 {
			r.Report(r.pass)
		}
	}
	if order >= 0 {
		r.target.next()
		r.digest(1, target)
	}
	switch {
	case order > 0:
		r.removed = append(r.removed, target.Key)
	case order < 0 || !store.SameHead(source, target, r.began.Add(ignoredClaims)):
		r.changed = append(r.changed, source.Key)
	}
	return true, nil
}

func (r *run) count(head *store.Record) {
	if head.Updated.After(r.pass.Newest) {
		r.pass.Newest = head.Updated
	}
	if head.Deleted {
		r.pass.Tombstones++
	} else {
		r.pass.Records++
	}
}

// digest adds a head to the digest of a storage.
func (r *run) digest(of int, head *store.Record) {
	_, _ = fmt.Fprintf(r.digests[of], "%q %q %d %d %d %t %q %d %q", head.Key.Type, head.Key.ID, head.Version,
		head.Created.UnixMilli(), head.Updated.UnixMilli(), head.Deleted, head.Method, head.MetadataVersion, head.Metadata)
	for _, claim := range store.ActiveClaims(head.Claims, r.began.Add(ignoredClaims)) {
		_, _ = fmt.Fprintf(r.digests[of], " %q %d %d %d", claim.Line, claim.From.UnixMicro(), claim.Until.UnixMicro(), claim.Expires.UnixMicro())
	}
	_, _ = fmt.Fprintln(r.digests[of])
}

// flush removes the records that the source does not have, and copies those that differ.
func (r *run) flush(ctx context.Context) error {
	for _, key := range r.removed {
		if err := r.remove(ctx, store.Op{Kind: store.Purge, Key: key, Erase: true}); err != nil {
			return err
		}
		r.pass.Removed++
	}
	r.removed = nil
	attempts := map[store.Key]int{}
	for len(r.changed) > 0 {
		n := min(len(r.changed), batchRecords)
		again, err := r.copy(ctx, r.changed[:n])
		if err != nil {
			return err
		}
		r.changed = append(r.changed[n:], again...)
		for _, key := range again {
			if attempts[key]++; attempts[key] > maxAttempts {
				return fmt.Errorf("copy %s/%s: its claims are held by other records after %d attempts: %w", key.Type, key.ID, maxAttempts, store.ErrUnavailable)
			}
		}
	}
	r.changed = nil
	return nil
}

// remove removes a record of the target. With Erase, the target also loses deliveries about it, which
// it has if it served the site before. It makes no events.
func (r *run) remove(ctx context.Context, purge store.Op) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	_, err := r.Target.Write(ctx, []store.Op{purge})
	return err
}

// copy copies records, and compares the copies with what was read. It returns the keys of those that
// must be copied again.
func (r *run) copy(ctx context.Context, keys []store.Key) (again []store.Key, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	query := store.DumpQuery{Keys: sorted(keys), MaxRecords: len(keys), MaxBytes: batchBytes}
	for more := true; more; {
		page, err := r.Source.Dump(ctx, query)
		if err != nil {
			return nil, err
		}
		if more = page.More && len(page.Records) > 0; more {
			query.After = page.Records[len(page.Records)-1].Key
		}
		failed, err := r.restore(ctx, page.Records)
		if err != nil {
			return nil, err
		}
		again = append(again, failed...)
	}
	return again, nil
}

// restore stores records in the target and compares them. It returns the keys of records that must
// be copied again: those whose claims another record of the target holds, and that other record,
// which has given up the claim in the source.
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
			r.pass.Copied++
		case result.Err == nil: // the target keeps fewer versions
			r.pass.Copied++
		case errors.As(result.Err, &diverged):
			// The source no longer has the versions between those of the target and its own.
			if err := r.remove(ctx, store.Op{Kind: store.Purge, Key: key}); err != nil {
				return nil, err
			}
			again = append(again, key)
		case errors.As(result.Err, &claim):
			if err := r.remove(ctx, store.Op{Kind: store.Purge, Key: claim.Holder}); err != nil {
				return nil, err
			}
			again = append(again, key, claim.Holder)
		default:
			return nil, fmt.Errorf("copy %s/%s: %w", key.Type, key.ID, result.Err)
		}
	}
	return again, r.compare(ctx, stored)
}

// compare compares the versions of records with those that the target returns. Errors:
// *DifferentError.
func (r *run) compare(ctx context.Context, stored []store.Dumped) error {
	keys := make([]store.Key, len(stored))
	for i := range stored {
		keys[i] = stored[i].Key
	}
	query := store.DumpQuery{Keys: keys, MaxRecords: len(keys), MaxBytes: batchBytes}
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
