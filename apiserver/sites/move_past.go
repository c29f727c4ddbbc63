package sites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/move"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// archivePage is the number of audit entries or ended deliveries that are written at a time.
const archivePage = 500

// copyPast copies the audit log and the ended deliveries of the storage that served the Site until the
// switch, or until the return, to the storage that serves it now. It first ends the logs of changes.
// It leaves out deliveries about records that were purged after the switch or the return.
func (m *mover) copyPast(ctx context.Context, former store.Store, renamed webhookNames) error {
	if err := m.dropChanges(ctx, former); err != nil {
		return err
	}
	if err := copyAudit(ctx, former, m.served); err != nil {
		return err
	}
	source, err := deliveryArchiveOf(ctx, former)
	if err != nil {
		return err
	}
	target, err := deliveryArchiveOf(ctx, m.served)
	if err != nil {
		return err
	}
	for after, more := "", true; more; {
		var ended []delivery.Archived
		if ended, after, err = source.DumpEnded(ctx, after, archivePage); err != nil {
			return err
		}
		purged, err := m.purgedOf(ctx, former, ended)
		if err != nil {
			return err
		}
		renamed.apply(ended)
		kept := slices.DeleteFunc(slices.Clone(ended), func(d delivery.Archived) bool {
			_, gone := purged[strings.ToLower(d.Event.Subject)]
			return gone
		})
		if err := target.RestoreEnded(ctx, kept); err != nil {
			return err
		}
		if err := m.erasePurged(ctx, former, ended); err != nil {
			return err
		}
		more = after != ""
	}
	return m.report(ctx, sitesv1.MoveCopy{Done: true})
}

// dropChanges ends the logs of changes of both storages.
func (m *mover) dropChanges(ctx context.Context, former store.Store) error {
	for _, storage := range []store.Store{m.served, former} {
		if log, there := storage.(store.ChangeLog); there {
			if err := log.DropChanges(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// erasePurged erases, in the storage that serves the Site, the deliveries about records that were
// purged since the switch, unless a new record uses the id. Such deliveries may have been restored
// while the record was being purged, or by an earlier call of copyPast that did not end. A purge that
// begins after this call erases them itself.
func (m *mover) erasePurged(ctx context.Context, former store.Store, ended []delivery.Archived) error {
	purged, err := m.purgedOf(ctx, former, ended)
	if err != nil {
		return err
	}
	for _, key := range purged {
		erase := store.Op{Kind: store.Purge, Key: key, Erase: true, If: store.Precondition{Approve: isPurged}}
		if _, err := m.served.Write(ctx, []store.Op{erase}); err != nil && !errors.Is(err, errKept) {
			return err
		}
	}
	return nil
}

// purgedOf returns the records that ended deliveries are about, and that were purged since the switch,
// by their subjects in lower case. Such a record is in the former storage, but the storage that serves
// the Site does not have it, or has a later record with the same id (move.IsPurged).
func (m *mover) purgedOf(ctx context.Context, former store.Store, ended []delivery.Archived) (map[string]store.Key, error) {
	now, before, err := m.storages(former)
	if err != nil {
		return nil, err
	}
	var subjects []store.Key
	for i := range ended {
		if kind, id, isRecord := strings.Cut(ended[i].Event.Subject, "/"); isRecord {
			subjects = append(subjects, store.Key{Type: kind, ID: id})
		}
	}
	there, err := headsOf(ctx, before, subjects)
	if err != nil {
		return nil, err
	}
	kept, err := headsOf(ctx, now, slices.Collect(maps.Keys(there)))
	if err != nil {
		return nil, err
	}
	purged := map[string]store.Key{}
	for key, head := range there {
		current, gone := kept[key], false
		switch {
		case current == nil:
			gone = true
		case current.Newest().Created.After(head.Newest().Updated):
			if gone, err = move.IsPurged(ctx, now, head); err != nil {
				return nil, err
			}
		}
		if gone {
			purged[strings.ToLower(key.Type+"/"+key.ID)] = key
		}
	}
	return purged, nil
}

// errKept refuses the erasure of deliveries about a record that exists, because it was created again
// after its purge.
var errKept = errors.New("the record exists")

func isPurged(current *store.Record) error {
	if current != nil {
		return errKept
	}
	return nil
}

// headsOf returns the newest versions of the records with the keys, tombstones included. Keys without
// a record are left out. headsOf sorts keys in place.
func headsOf(ctx context.Context, storage move.Storage, keys []store.Key) (map[store.Key]*store.Dumped, error) {
	slices.SortFunc(keys, store.Key.Compare)
	keys = slices.Compact(keys)
	found := map[store.Key]*store.Dumped{}
	if len(keys) == 0 {
		return found, nil
	}
	query := store.DumpQuery{Keys: keys, Heads: true, MaxRecords: len(keys), MaxBytes: 1}
	for more := true; more; {
		page, err := storage.Dump(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			found[page.Records[i].Key] = &page.Records[i]
			query.After = page.Records[i].Key
		}
		more = page.More && len(page.Records) > 0
	}
	return found, nil
}

// deliveryArchiveOf returns the archive of a store's deliveries. Errors: store.ErrUnavailable if no store
// is open, and those of opening the database.
func deliveryArchiveOf(ctx context.Context, opened store.Store) (delivery.Archive, error) {
	switch opened := opened.(type) {
	case *database:
		site, err := opened.opened(ctx)
		if err != nil {
			return nil, err
		}
		return queue.NewArchive(opened.pool, site.Number()), nil
	case *cluster.Store:
		return opened.Archive(), nil
	default:
		return nil, fmt.Errorf("open the storage of deliveries: %w", store.ErrUnavailable)
	}
}
