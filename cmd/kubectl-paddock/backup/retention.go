package backup

import (
	"context"
	"slices"
	"time"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
)

// prune deletes old backups after the backup current is complete, and returns their names, also with an
// error. It keeps current and the newest complete backups, keep in total, and incomplete backups that are
// not older than abandonedAfter. If keep is 0, it deletes nothing. Folders with names of another form
// remain.
func prune(ctx context.Context, f *folder, current string, keep int, now time.Time) ([]string, error) {
	if keep == 0 {
		return nil, nil
	}
	names, err := backups(ctx, f)
	if err != nil {
		return nil, err
	}
	complete := 1 // current, whatever its time is
	var removed []string
	for _, name := range names {
		if name == current {
			continue
		}
		isComplete, err := f.has(ctx, name+"/"+bulk.ManifestName)
		if err != nil {
			return removed, err
		}
		began, _ := timeOf(name)
		switch {
		case isComplete && complete < keep:
			complete++
			continue
		case !isComplete && now.Sub(began) <= abandonedAfter:
			continue
		}
		// Without its manifest, the backup is incomplete. If a file were deleted first, a process that is
		// killed here would leave a backup that looks complete.
		if err := f.removeObject(ctx, name+"/"+bulk.ManifestName); err != nil {
			return removed, err
		}
		if err := f.remove(ctx, name+"/"); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// backups returns the names of the backups, complete or not, newest first.
func backups(ctx context.Context, f *folder) ([]string, error) {
	folders, err := f.folders(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(folders, func(name string) bool {
		_, ok := timeOf(name)
		return !ok
	})
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}
