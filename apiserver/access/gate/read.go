package gate

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Get implements store.Store. Errors: those of the store, of Options.View and of Options.Restrict.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	condition, err := s.condition(key.Type)
	if err != nil {
		return store.Record{}, err
	}
	restriction, err := s.restriction("get", key.Type)
	if err != nil {
		return store.Record{}, err
	}
	record, err := s.behind.Get(ctx, key)
	if deleted := new(store.DeletedError); errors.As(err, &deleted) {
		return store.Record{}, s.deleted(ctx, condition, restriction, deleted)
	}
	if err == nil {
		err = s.checkAll(ctx, condition, restriction, record)
	}
	if err != nil {
		return store.Record{}, err
	}
	return record, nil
}

// deleted returns the error for a deleted record: deleted itself, or store.ErrNotFound if its last
// version was hidden from the caller, was not in the restriction or has been removed.
func (s *Store) deleted(ctx context.Context, condition store.Condition, restriction *Restriction, deleted *store.DeletedError) error {
	if store.IsEverything(condition) && restriction == unrestricted {
		return deleted
	}
	if _, err := s.lastVersion(ctx, condition, restriction, deleted); err != nil {
		return err
	}
	return deleted
}

// lastVersion returns the version of a deleted record before the deletion. Errors: those of the store, and
// store.ErrNotFound if it was hidden from the caller, was not in the restriction or has been removed.
func (s *Store) lastVersion(ctx context.Context, condition store.Condition, restriction *Restriction, deleted *store.DeletedError) (store.Record, error) {
	last, err := s.behind.GetVersion(ctx, deleted.Key, deleted.Version-1)
	if err == nil {
		err = s.checkAll(ctx, condition, restriction, last)
	}
	return last, err
}

// checkAll is like check, but also returns store.ErrNotFound if a version is not in a restriction.
func (s *Store) checkAll(ctx context.Context, condition store.Condition, restriction *Restriction, record store.Record) error {
	if !restriction.Holds(record.Key, record.Body) {
		return store.ErrNotFound
	}
	return s.check(ctx, condition, record)
}

// check returns store.ErrNotFound and calls Options.Hid if a version does not meet a condition. The
// version must not be a deletion.
func (s *Store) check(ctx context.Context, condition store.Condition, record store.Record) error {
	if store.IsEverything(condition) {
		return nil
	}
	labels := s.options.Labels(record.Key.Type, record.Body)
	visible, err := s.holds(ctx, condition, labels)
	if err != nil || visible {
		return err
	}
	if s.options.Hid != nil {
		s.options.Hid(ctx, s.options.View.HiddenBy(record.Key.Type, labels))
	}
	return store.ErrNotFound
}

// holds evaluates a condition on labels, and reads the records to which they link. Errors: those of
// the store.
func (s *Store) holds(ctx context.Context, condition store.Condition, labels store.Labels) (bool, error) {
	var failed error
	visible := privacy.Holds(condition, labels, func(to store.LinksTo, link store.Link) bool {
		key, local := link.To.Local(s.options.Bases)
		if !local {
			return true
		}
		if key.Type != to.Type {
			return false
		}
		target, err := s.behind.Get(ctx, key)
		if err != nil {
			if !store.IsAbsent(err) {
				failed = err
			}
			return false
		}
		met, err := s.holds(ctx, to.Where, s.options.Labels(key.Type, target.Body))
		failed = errors.Join(failed, err)
		return met
	})
	return visible && failed == nil, failed
}

// GetVersion implements store.Store. A version is visible if privacy rules allow it with its own
// labels, and also with the labels of the record's newest version that is not a deletion. For a
// deletion, the version before it counts. Both versions must also be in the restriction of the
// right to get (Options.Restrict).
func (s *Store) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	condition, err := s.condition(key.Type)
	if err != nil {
		return store.Record{}, err
	}
	restriction, err := s.restriction("get", key.Type)
	if err != nil {
		return store.Record{}, err
	}
	record, err := s.behind.GetVersion(ctx, key, version)
	if err != nil || store.IsEverything(condition) && restriction == unrestricted {
		return record, err
	}
	own := record
	if record.Deleted {
		if own, err = s.behind.GetVersion(ctx, key, version-1); err != nil {
			return store.Record{}, err
		}
	}
	if err := s.checkAll(ctx, condition, restriction, own); err != nil {
		return store.Record{}, err
	}
	if _, err := s.Get(ctx, key); err != nil {
		if deleted := new(store.DeletedError); !errors.As(err, &deleted) {
			return store.Record{}, err
		}
	}
	return record, nil
}

// Hidden returns those of the keys whose records are live and hidden from the caller. A record is
// hidden by privacy rules, or because Options.Restrict lets the caller neither get nor list it.
// Errors: those of the store, of Options.View and of Options.Restrict.
func (s *Store) Hidden(ctx context.Context, keys []store.Key) ([]store.Key, error) {
	return s.hidden(ctx, keys, s.readable)
}

// hiddenByRules returns those of the keys whose records are live and hidden by privacy rules.
func (s *Store) hiddenByRules(ctx context.Context, keys []store.Key) ([]store.Key, error) {
	return s.hidden(ctx, keys, func(string) (*Restriction, error) { return unrestricted, nil })
}

// hiddenConcurrency is how many records one call of hidden reads concurrently: as many as a batch of
// package batcher has, because Postgres reads concurrent keys in batches. Further reads wait.
const hiddenConcurrency = 64

// visibility is which records of a type the caller sees: those that meet the condition and are in the
// restriction.
type visibility struct {
	condition   store.Condition
	restriction *Restriction
}

// hidden returns those of the keys whose records are live, and hidden by privacy rules or not in the
// restriction of their type.
func (s *Store) hidden(ctx context.Context, keys []store.Key, restrictionOf func(recordType string) (*Restriction, error)) ([]store.Key, error) {
	byType := map[string]visibility{}
	for _, key := range keys {
		if _, known := byType[key.Type]; known {
			continue
		}
		condition, err := s.condition(key.Type)
		if err != nil {
			return nil, err
		}
		restriction, err := restrictionOf(key.Type)
		if err != nil {
			return nil, err
		}
		byType[key.Type] = visibility{condition, restriction}
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(key store.Key) bool {
		of := byType[key.Type]
		return store.IsEverything(of.condition) && of.restriction == unrestricted
	})
	if len(keys) == 0 {
		return nil, nil
	}
	hides := make([]bool, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hiddenConcurrency)
	for i, key := range keys {
		group.Go(func() (err error) {
			hides[i], err = s.hides(ctx, key, byType[key.Type])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var hidden []store.Key
	for i, key := range keys {
		if hides[i] {
			hidden = append(hidden, key)
		}
	}
	return hidden, nil
}

// hides reports whether a record is live and not visible.
func (s *Store) hides(ctx context.Context, key store.Key, visible visibility) (bool, error) {
	record, err := s.behind.Get(ctx, key)
	if store.IsAbsent(err) {
		return false, nil
	}
	if err == nil {
		err = s.checkAll(ctx, visible.condition, visible.restriction, record)
	}
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// readable returns the records of a type that Options.Restrict lets the caller get or list. Only
// Restriction.Holds of the result is set, unless it is unrestricted.
func (s *Store) readable(recordType string) (*Restriction, error) {
	get, err := s.restriction("get", recordType)
	if err != nil || get == unrestricted {
		return get, err
	}
	list, err := s.restriction("list", recordType)
	if err != nil || list == unrestricted {
		return list, err
	}
	return &Restriction{Holds: func(key store.Key, body store.Body) bool {
		return get.Holds(key, body) || list.Holds(key, body)
	}}, nil
}
