package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Archive dumps the records of one engine and restores them in another, with all their stored data.
// It does not apply privacy rules and makes no events. Engines implement Archive in addition to
// Store.
type Archive interface {
	// Dump returns a page of records with all their versions, tombstones included, ordered by type
	// and then by the bytes of the id in lower case. It leaves out jobs. All versions of a record are
	// read at the same point in time. The page is as fresh as that of a Search. Errors: ErrNotReady,
	// ErrQueryTimeout, ErrUnavailable.
	Dump(ctx context.Context, query DumpQuery) (DumpPage, error)
	// Restore stores records as another engine dumped them: ids, versions, times, bodies, claims
	// and metadata. UIDs and revisions are new. A record that exists already gets the versions that
	// it lacks. Restore returns a result for each record, in the same order. After an error, it is
	// unknown which of the records are stored. Restore can be repeated with records that are stored
	// already. It does not check references. Each part of a record (Dumped.Continues) needs a call of its
	// own. Errors: ErrMoving, ErrNotReady, ErrUnavailable.
	Restore(ctx context.Context, records []Dumped) ([]Restored, error)
	// KeepsVersions reports whether Restore stores all versions of a record. Otherwise the limits of the
	// site can drop the oldest versions.
	KeepsVersions() bool
}

// DumpQuery selects a page of a dump.
type DumpQuery struct {
	// After is the key of the last record of the previous page. The zero value selects the first
	// page.
	After Key
	// Since selects only records that have a version from this time or later. The zero value selects
	// all. Since must be zero if Keys is not nil.
	Since time.Time
	// Keys, if not nil, selects only these records. They must be in the order of a dump.
	Keys []Key
	// Oldest, if not nil, has for each of Keys the number of the oldest version to return. Older versions
	// are left out, but never the newest version.
	Oldest []int64
	// Heads leaves out superseded versions and all bodies.
	Heads bool
	// MaxRecords is the maximum number of records of the page, at least 1, and at least the number of
	// Keys. MaxBytes is a threshold in bytes: when the bodies of the page exceed MaxBytes, no further
	// record is added.
	MaxRecords, MaxBytes int
}

// OldestOf returns the number of the oldest version to return of Keys[i].
func (q *DumpQuery) OldestOf(i int) int64 {
	if q.Oldest == nil {
		return 0
	}
	return q.Oldest[i]
}

// DumpPage is a page of a dump. More reports whether further records may follow the last one.
type DumpPage struct {
	Records []Dumped
	More    bool
}

// Dumped is a record with all its versions.
type Dumped struct {
	Key Key
	// Versions are in ascending order. Old versions may be missing. Only the last version has Claims,
	// Metadata and MetadataVersion.
	Versions []Record
	// Continues marks the rest of a record whose older versions are in another Dumped. The first version
	// repeats the newest of those older versions, so that Restore can check that they are stored.
	Continues bool
	// Superseded is the number of superseded versions. Only heads have it.
	Superseded int64
}

// Newest returns the newest version. The record must have at least one version.
func (d *Dumped) Newest() *Record { return &d.Versions[len(d.Versions)-1] }

// Compare compares the places of two keys in a dump, as cmp.Compare does.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Type, other.Type), strings.Compare(strings.ToLower(k.ID), strings.ToLower(other.ID)))
}

// SameHead reports whether two newest versions are the same, with the same metadata and the same
// claims, apart from claims that have expired at now. It does not compare bodies, which a head lacks.
func SameHead(a, b *Record, now time.Time) bool {
	return a.Key == b.Key && a.Version == b.Version && a.Updated.Equal(b.Updated) && a.Created.Equal(b.Created) &&
		a.Deleted == b.Deleted && a.Method == b.Method && sameExtras(a, b, now) && (len(a.Metadata) == 0 || a.MetadataVersion == b.MetadataVersion)
}

// Restored is the result of Archive.Restore for one record.
type Restored struct {
	// Outcome is Created if the record is new, Updated if it got versions, claims or metadata, and
	// Unchanged if it already had all of them.
	Outcome Outcome
	// Dropped is the number of superseded versions that the engine does not keep, because of its
	// limits or of missing versions after them.
	Dropped int
	// Err is nil if the record is stored. Otherwise the record is as it was before: *DivergedError,
	// *IncompleteError, *ClaimError, *LimitError, *InvalidDumpError, or in the Cluster engine the error
	// with which kube-apiserver refused the record.
	Err error
}

// DivergedError means that two histories of a record cannot be merged. Either the stored record has
// a version that the record to restore lacks, or has with other content or times. Or the stored
// record is newer, and lacks the newest version of the record to restore.
type DivergedError struct {
	Key Key
	// Version is the number of the version that only one of the records has, or that both have with
	// other content or times.
	Version int64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("version %d of %s/%s differs between the dump and the storage, or only one of them has it; restore into an empty site, or purge the record first", e.Version, e.Key.Type, e.Key.ID)
}

// IncompleteError means that the rest of a record cannot be restored yet, because older versions of it are
// not stored.
type IncompleteError struct {
	Key Key
	// Version is the number of the newest version that is missing.
	Version int64
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%s/%s is continued from version %d, which is not stored; restore its older versions first", e.Key.Type, e.Key.ID, e.Version)
}

// InvalidDumpError means that a record to restore is not in a state that an engine can have.
type InvalidDumpError struct {
	// At is the member that is wrong, such as versions[2].updated.
	At string
	// Problem says what is wrong. It continues a sentence that begins with At.
	Problem string
}

func (e *InvalidDumpError) Error() string { return e.At + " " + e.Problem }

// The times of a dump must be within these bounds, which all engines can store.
var (
	earliestDump = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	latestDump   = time.Date(2089, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Check returns an error if the record is not in a state that an engine can have. Errors:
// *InvalidDumpError.
func (d *Dumped) Check() error {
	if d.Key.Type == "" || d.Key.ID == "" || d.Key.Type == JobType {
		return &InvalidDumpError{"type", "and id must not be empty, and the type must not be BulkExport, the type of export jobs"}
	}
	if len(d.Versions) == 0 {
		return &InvalidDumpError{"versions", "must have at least one version"}
	}
	for i := range d.Versions {
		if err := CheckVersion(d.Versions, i); err != nil {
			return err
		}
	}
	return checkNewest(d.Newest())
}

// CheckVersion checks version i of a record, and that it can follow the version before it. Errors:
// *InvalidDumpError.
func CheckVersion(versions []Record, i int) error {
	var before *Record
	if i > 0 {
		before = &versions[i-1]
	}
	if member, problem := checkDumped(before, &versions[i]); problem != "" {
		return &InvalidDumpError{fmt.Sprintf("versions[%d].%s", i, member), problem}
	}
	return nil
}

// CheckClaim checks claim i of a record, but not that it differs from the claims before it. Errors:
// *InvalidDumpError.
func CheckClaim(claims []Claim, i int) error {
	claim := &claims[i]
	if claim.Line == "" || !claim.From.IsZero() && !claim.Until.IsZero() && !claim.From.Before(claim.Until) {
		return &InvalidDumpError{fmt.Sprintf("claims[%d]", i), "must have a member line that is not empty, and from must be before until if both are set"}
	}
	return nil
}

// checkDumped checks a version, and that it can follow the version before it, which is nil for the
// first one.
func checkDumped(before, v *Record) (member, problem string) {
	switch {
	case v.Version < 1:
		return "version", "must be at least 1"
	case !isDumpTime(v.Created):
		return "created", "must be a time from 2020 to 2088 in whole milliseconds"
	case !isDumpTime(v.Updated) || v.Updated.Before(v.Created):
		return "updated", "must be a time from 2020 to 2088 in whole milliseconds, and not before created"
	case v.Method != "" && !slices.Contains([]Method{MethodPost, MethodPut, MethodPatch, MethodDelete}, v.Method):
		return "method", "must be POST, PUT, PATCH or DELETE"
	case v.Deleted != (len(v.Body.JSON) == 0):
		return "body", "must be missing if the version is deleted, and only then"
	case before == nil:
		return "", ""
	case v.Version <= before.Version:
		return "version", "must be greater than that of the version before"
	case !v.Updated.After(before.Updated):
		return "updated", "must be later than that of the version before"
	case v.Created.Before(before.Created):
		return "created", "must not be before that of the version before"
	case v.Version > before.Version+1: // versions between them are missing
		return "", ""
	case !before.Deleted && !v.Created.Equal(before.Created):
		return "created", "must be that of the version before, unless the version before is deleted"
	case before.Deleted && v.Deleted:
		return "deleted", "must not be true if the version before is deleted too"
	case before.Deleted && v.Created.Before(before.Updated):
		return "created", "must not be before updated of the version before, which is a deletion"
	}
	return "", ""
}

func isDumpTime(at time.Time) bool {
	return !at.Before(earliestDump) && at.Before(latestDump) && at.Equal(at.Truncate(time.Millisecond))
}

func checkNewest(v *Record) error {
	if v.Deleted && (len(v.Claims) > 0 || len(v.Metadata) > 0) {
		return &InvalidDumpError{"claims", "and metadata must be missing if the newest version is deleted"}
	}
	if len(v.Metadata) > 0 && (v.MetadataVersion < 1 || v.MetadataVersion > v.Version) {
		return &InvalidDumpError{"metadataVersion", "must be between 1 and the newest version of the record"}
	}
	type begin struct {
		line string
		from int64
	}
	begins := make(map[begin]bool, len(v.Claims))
	for i, claim := range v.Claims {
		if err := CheckClaim(v.Claims, i); err != nil {
			return err
		}
		at := begin{claim.Line, claim.From.UnixMicro()} // engines store microseconds
		if begins[at] {
			return &InvalidDumpError{fmt.Sprintf("claims[%d]", i), "has the same line and from as another claim of the record"}
		}
		begins[at] = true
	}
	return nil
}

// ActiveClaims returns the claims that have not expired at a time. A dump has only those, and only
// those are restored.
func ActiveClaims(claims []Claim, now time.Time) []Claim {
	var active []Claim
	for _, claim := range claims {
		if !claim.Expired(now) {
			active = append(active, claim)
		}
	}
	return active
}

// IsOlder reports whether the newest dumped version is older than current, the newest stored version.
// current is nil if the record is not stored. If IsOlder is true, the engine compares the newest
// dumped version with the stored version of the same number by SameVersion.
func (d *Dumped) IsOlder(current *Record) bool {
	return current != nil && d.Newest().Version < current.Version
}

// Missing returns the versions that a stored record lacks. current is its newest version, or nil if
// there is none. changed is true if the stored record lacks no version, but its claims or metadata
// differ. IsOlder must be false. Claims that have expired at now are not compared. Errors:
// *DivergedError, *IncompleteError.
func (d *Dumped) Missing(current *Record, now time.Time) (missing []Record, changed bool, err error) {
	if first := d.Versions[0].Version; d.Continues && (current == nil || current.Version < first) {
		return nil, false, &IncompleteError{Key: d.Key, Version: first}
	}
	if current == nil {
		return d.Versions, false, nil
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		switch {
		case v.Version == current.Version && !SameVersion(v, current):
			return nil, false, &DivergedError{Key: d.Key, Version: v.Version}
		case v.Version == current.Version:
			if i == len(d.Versions)-1 {
				return nil, !sameExtras(v, current, now), nil
			}
			return d.Versions[i+1:], false, nil
		case v.Version > current.Version:
			// The dump lacks the stored version, so the two histories cannot be merged.
			return nil, false, &DivergedError{Key: d.Key, Version: current.Version}
		}
	}
	return nil, false, &DivergedError{Key: d.Key, Version: current.Version}
}

// SameVersion reports whether two versions with the same number have the same content and times.
func SameVersion(a, b *Record) bool {
	return a.Version == b.Version && a.Updated.Equal(b.Updated) && a.Created.Equal(b.Created) && a.Deleted == b.Deleted &&
		a.Method == b.Method && bytes.Equal(a.Body.JSON, b.Body.JSON)
}

// sameExtras reports whether two newest versions have the same active claims and metadata.
func sameExtras(a, b *Record, now time.Time) bool {
	return bytes.Equal(a.Metadata, b.Metadata) && slices.EqualFunc(ActiveClaims(a.Claims, now), ActiveClaims(b.Claims, now), Claim.Same)
}

// Synchronizer is implemented by engines whose Dump may lack the latest writes of other replicas.
// (A Search with Query.Consistent has these writes without Synchronize.)
type Synchronizer interface {
	// Synchronize returns when Dump has everything that was written before the call. Errors:
	// ErrUnavailable.
	Synchronize(ctx context.Context) error
}
