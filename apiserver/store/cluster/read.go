package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// Get implements store.Store.
func (s *Site) Get(ctx context.Context, key store.Key) (store.Record, error) {
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
func (s *Site) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
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

// superseded reads the past versions of a record by number.
func (s *Site) superseded(ctx context.Context, obj *recordsv1.Record) (map[string]recordsv1.SupersededVersion, error) {
	if len(obj.Spec.History) == 0 {
		return nil, nil
	}
	var history recordsv1.RecordHistory
	name := historyName(obj.Name, obj.Spec.Lineage)
	err := s.engine.client.get(ctx, historiesResource, s.namespace, name, &history)
	if err != nil && !isNotFound(err) {
		return nil, storeError("read history "+name, err)
	}
	return history.Spec.Versions, nil
}

func (s *Site) readPast(obj *recordsv1.Record, version int64, past recordsv1.SupersededVersion) (store.Record, error) {
	record, err := fromSuperseded(&obj.Spec, version, past)
	if err != nil {
		return store.Record{}, fmt.Errorf("read version %d of %s: %w", version, obj.Name, err)
	}
	return record, nil
}
