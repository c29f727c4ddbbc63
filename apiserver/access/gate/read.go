package gate

import (
	"context"
	"errors"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Get implements store.Store.
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
	if err == nil && !restriction.Holds(record.Key, record.Body) {
		return store.Record{}, store.ErrNotFound
	}
	if store.IsEverything(condition) {
		return record, err
	}
	var deleted *store.DeletedError
	switch {
	case errors.As(err, &deleted):
		return store.Record{}, s.deleted(ctx, condition, deleted)
	case err != nil:
		return store.Record{}, err
	}
	return record, s.check(ctx, condition, record)
}

// deleted returns the error for a deleted record: deleted itself, or store.ErrNotFound if its last
// version was hidden from the caller or has been removed.
func (s *Store) deleted(ctx context.Context, condition store.Condition, deleted *store.DeletedError) error {
	last, err := s.behind.GetVersion(ctx, deleted.Key, deleted.Version-1)
	if err == nil {
		err = s.check(ctx, condition, last)
	}
	if err != nil {
		return err
	}
	return deleted
}

// check returns store.ErrNotFound and calls Options.Hid if a version does not meet a condition. The
// version must not be a deletion.
func (s *Store) check(ctx context.Context, condition store.Condition, record store.Record) error {
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

// GetVersion implements store.Store. A version is visible if privacy rules allow it both with the
// labels of the version itself and with the labels of the record's newest version that is not a
// deletion.
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
	if err == nil && !restriction.Holds(record.Key, record.Body) {
		err = store.ErrNotFound
	}
	if err != nil || store.IsEverything(condition) && restriction == unrestricted {
		return record, err
	}
	own := record
	if record.Deleted {
		if own, err = s.behind.GetVersion(ctx, key, version-1); err != nil {
			return store.Record{}, err
		}
	}
	if err := s.check(ctx, condition, own); err != nil {
		return store.Record{}, err
	}
	if _, err := s.Get(ctx, key); err != nil {
		if deleted := new(store.DeletedError); !errors.As(err, &deleted) {
			return store.Record{}, err
		}
	}
	return record, nil
}

// Hidden returns those of the keys whose records are live and hidden from the caller by privacy rules.
// It does not return records that Options.Restrict excludes. Errors: those of the store and of
// Options.View.
func (s *Store) Hidden(ctx context.Context, keys []store.Key) ([]store.Key, error) {
	var hidden []store.Key
	for _, key := range keys {
		condition, err := s.condition(key.Type)
		if err != nil {
			return nil, err
		}
		if store.IsEverything(condition) {
			continue
		}
		record, err := s.behind.Get(ctx, key)
		if err == nil {
			err = s.check(ctx, condition, record)
		} else if store.IsAbsent(err) {
			continue
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			hidden = append(hidden, key)
		case err != nil:
			return nil, err
		}
	}
	return hidden, nil
}
