package sites

import (
	"context"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// auditPage is the number of audit entries that are read at a time from a database, some 10 MB.
const auditPage = 10_000

// auditDump is an audit log that can be read as a whole. A search in such a log reads all entries of
// an hour for each page, so that a copy by searches would take long.
type auditDump interface {
	// Dump calls visit with all entries, until visit returns an error: those of the newest hour first, in no
	// order within an hour.
	Dump(ctx context.Context, visit func([]audit.Entry) error) error
	// Positions returns the positions of the entries of an hour, which is in UTC.
	Positions(ctx context.Context, hour time.Time) (map[audit.Position]bool, error)
}

// copyAudit copies all entries of the audit log of one store that the log of another store does not
// have.
func copyAudit(ctx context.Context, from, to store.Store) error {
	_, source := auditPlace(from)
	_, target := auditPlace(to)
	c := &auditCopier{target: target()}
	reader := source()
	if dump, ok := reader.(auditDump); ok {
		return dump.Dump(ctx, func(entries []audit.Entry) error { return c.copy(ctx, entries) })
	}
	query := audit.Query{Count: auditPage}
	for {
		found, err := reader.Search(ctx, query)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := c.copy(ctx, found); err != nil {
			return err
		}
		query.After = found[len(found)-1].Position()
	}
}

// auditCopier appends to target the entries that target does not have. In the cluster, entries that
// are appended again take space, although a search returns them once.
type auditCopier struct {
	target audit.Storage
	// there has the positions of the entries that the target has in hour, if the target is an auditDump.
	hour  time.Time
	there map[audit.Position]bool
}

func (c *auditCopier) copy(ctx context.Context, entries []audit.Entry) error {
	var absent []*audit.Entry
	var err error
	if dump, ok := c.target.(auditDump); ok {
		absent, err = c.notIn(ctx, dump, entries)
	} else {
		absent, err = missing(ctx, c.target, entries)
	}
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(absent, archivePage) {
		if err := c.target.Append(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// notIn returns the entries that target does not have. It keeps the positions of one hour, because
// Dump returns the entries hour by hour.
func (c *auditCopier) notIn(ctx context.Context, target auditDump, entries []audit.Entry) (absent []*audit.Entry, err error) {
	for i := range entries {
		if hour := entries[i].Time.UTC().Truncate(time.Hour); c.there == nil || !hour.Equal(c.hour) {
			if c.there, err = target.Positions(ctx, hour); err != nil {
				return nil, err
			}
			c.hour = hour
		}
		if !c.there[entries[i].Position()] {
			absent = append(absent, &entries[i])
		}
	}
	return absent, nil
}

// missing returns the entries that a log does not have.
func missing(ctx context.Context, log audit.Storage, entries []audit.Entry) ([]*audit.Entry, error) {
	there := map[audit.Position]bool{}
	query := audit.Query{Count: auditPage}
	for i := range entries {
		if query.From.IsZero() || entries[i].Time.Before(query.From) {
			query.From = entries[i].Time
		}
		if until := entries[i].Time.Add(time.Millisecond); until.After(query.Until) {
			query.Until = until
		}
	}
	for more := len(entries) > 0; more; {
		found, err := log.Search(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range found {
			there[found[i].Position()] = true
		}
		if more = len(found) == query.Count; more {
			query.After = found[len(found)-1].Position()
		}
	}
	var absent []*audit.Entry
	for i := range entries {
		if !there[entries[i].Position()] {
			absent = append(absent, &entries[i])
		}
	}
	return absent, nil
}
