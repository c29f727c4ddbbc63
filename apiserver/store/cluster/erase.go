package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// erase purges a record and removes the events and deliveries about it. It removes events and
// deliveries before the record, so that after a crash a repeated request still finds the record. It
// removes them again after the record, because a write may have added events in the meantime.
func (s *Store) erase(ctx context.Context, op store.Op) ([]store.Result, error) {
	current, err := s.fetch(ctx, recordName(op.Key))
	if err != nil {
		return nil, err
	}
	var record *store.Record
	if current != nil && !current.Spec.Purging {
		r := toRecord(current)
		record = &r
	}
	if err := op.If.Check(op.Key, record); err != nil {
		return nil, err // a refused operation removes no events either
	}
	subject := op.Key.Type + "/" + op.Key.ID
	if err := s.eraseEvents(ctx, subject); err != nil {
		return nil, err
	}
	results, err := s.writeOne(ctx, op)
	if err != nil {
		return nil, err
	}
	return results, s.eraseEvents(ctx, subject)
}

// eraseEvents removes the events and deliveries with a subject, which is compared without case. It
// first removes the events in Records, and then the deliveries.
func (s *Store) eraseEvents(ctx context.Context, subject string) error {
	for _, obj := range s.index.recordsWithEvents(subject) {
		if err := s.removeEvents(ctx, obj, subject); err != nil {
			return err
		}
	}
	e := &erasure{subject: subject, err: store.ErrUnavailable}
	if err := s.erasures.Do(ctx, e); err != nil {
		return fmt.Errorf("remove deliveries: %w: %w", store.ErrUnavailable, err)
	}
	return e.err
}

// erasureTimeout limits a removal of deliveries, which reads all deliveries of the site.
const erasureTimeout = time.Minute

// erasure is the removal of the deliveries with a subject. err is its result.
type erasure struct {
	subject string
	err     error
}

// eraseDeliveries removes the deliveries of a batch of erasures. Many subjects cost about as much as one:
// kube-apiserver answers the list of deliveries only when its cache is known to be up to date, which
// takes about 100 ms.
func (s *Store) eraseDeliveries(ctx context.Context, batch []*erasure) {
	subjects := make([]string, len(batch))
	for i, e := range batch {
		subjects[i] = e.subject
	}
	err := deliveries.Erase(ctx, s.engine.client, s.namespace, s.key, subjects)
	for _, e := range batch {
		e.err = err
	}
}

// recordsWithEvents returns the Records that have events with a subject.
func (x *index) recordsWithEvents(subject string) []*recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*recordsv1.Record
	for _, e := range x.withEvents {
		if slices.ContainsFunc(e.obj.Spec.Events, isAbout(subject)) {
			found = append(found, e.obj)
		}
	}
	return found
}

func isAbout(subject string) func(recordsv1.PendingEvent) bool {
	return func(e recordsv1.PendingEvent) bool { return strings.EqualFold(e.Subject, subject) }
}

// removeEvents removes the events with a subject from a Record. It deletes the Record of a purged
// record that has no events left.
func (s *Store) removeEvents(ctx context.Context, current *recordsv1.Record, subject string) error {
	name := current.Name
	for attempt := 0; current != nil; attempt++ {
		if err := backoff(ctx, attempt); err != nil {
			return err
		}
		spec := current.Spec
		left := slices.DeleteFunc(deliveries.Carry(spec.Events, current.ResourceVersion), isAbout(subject))
		if len(left) == len(spec.Events) {
			return nil
		}
		setEvents(&spec, left)
		obj := (&write{site: s, name: name}).object(spec, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID})
		meta, err := s.engine.client.Update(ctx, objects.Records, s.namespace, name, obj)
		if err == nil {
			obj.ObjectMeta = meta
			s.applyOwnWrite(obj)
			if spec.Purging && !spec.HasEvents {
				return s.finishPurge(ctx, obj)
			}
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return objects.StoreError("remove events from record "+name, err)
		}
		if current, err = s.fetch(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
