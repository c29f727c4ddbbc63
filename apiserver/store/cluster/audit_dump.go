package cluster

import (
	"context"
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Dump calls visit with the entries of each segment, until visit returns an error: those of the newest
// hour first, in no order within an hour. Some entries may be visited twice. Dump reads each segment
// once, whereas each page of Search reads all segments of an hour.
func (l *auditLog) Dump(ctx context.Context, visit func([]audit.Entry) error) error {
	infos, err := l.list(ctx)
	if err != nil {
		return err
	}
	for _, info := range infos {
		var entries []audit.Entry
		if err := l.readInTime(ctx, info, func(e *audit.Entry) { entries = append(entries, *e) }); err != nil {
			return err
		}
		if err := visit(entries); err != nil {
			return err
		}
	}
	return nil
}

// Positions returns the positions of the entries of an hour, which is in UTC.
func (l *auditLog) Positions(ctx context.Context, hour time.Time) (map[audit.Position]bool, error) {
	infos, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	positions := map[audit.Position]bool{}
	for _, info := range infos {
		if !info.hour.Equal(hour) {
			continue
		}
		if err := l.readInTime(ctx, info, func(e *audit.Entry) { positions[e.Position()] = true }); err != nil {
			return nil, err
		}
	}
	return positions, nil
}

// list returns the segments of the site.
func (l *auditLog) list(ctx context.Context) ([]segmentInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, objects.Timeout)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments(ctx)
}

// readInTime is readSegment with a time limit.
func (l *auditLog) readInTime(ctx context.Context, info segmentInfo, visit func(*audit.Entry)) error {
	ctx, cancel := context.WithTimeout(ctx, objects.Timeout)
	defer cancel()
	return l.readSegment(ctx, info, visit)
}
