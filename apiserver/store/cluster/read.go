package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	obj, err := s.fetch(ctx, recordName(key))
	if err != nil {
		return store.Record{}, err
	}
	if obj == nil || obj.Spec.Purging {
		return store.Record{}, store.ErrNotFound
	}
	record := toRecord(obj)
	if record.Deleted {
		return store.Record{}, &store.DeletedError{Key: record.Key, Version: record.Version, Updated: record.Updated}
	}
	return record, nil
}

// GetVersion implements store.Store.
func (s *Store) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	obj, err := s.fetch(ctx, recordName(key))
	if err != nil {
		return store.Record{}, err
	}
	if obj == nil || obj.Spec.Purging || version > obj.Spec.Version {
		return store.Record{}, store.ErrNotFound
	}
	if version == obj.Spec.Version {
		return toRecord(obj), nil
	}
	past, err := s.superseded(ctx, obj)
	if err != nil {
		return store.Record{}, err
	}
	found, ok := past[versionKey(version)]
	if !ok {
		return store.Record{}, store.ErrNotFound
	}
	return s.readPast(obj, version, found)
}

// superseded reads the superseded versions of a record. The keys of the map are those of
// versionKey.
func (s *Store) superseded(ctx context.Context, obj *recordsv1.Record) (map[string]recordsv1.SupersededVersion, error) {
	if len(obj.Spec.History) == 0 {
		return nil, nil
	}
	var history recordsv1.RecordHistory
	name := objects.HistoryName(obj)
	err := s.engine.client.Get(ctx, objects.Histories, s.namespace, name, &history)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, objects.StoreError("read history "+name, err)
	}
	return history.Spec.Versions, nil
}

func (s *Store) readPast(obj *recordsv1.Record, version int64, past recordsv1.SupersededVersion) (store.Record, error) {
	record, err := fromSuperseded(&obj.Spec, version, past)
	if err != nil {
		return store.Record{}, fmt.Errorf("read version %d of %s: %w", version, obj.Name, err)
	}
	return record, nil
}
