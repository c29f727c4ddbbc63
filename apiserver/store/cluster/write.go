package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Steps of a write, as AfterStep is told them.
const (
	StepPlaceholder = "placeholder"
	StepClaims      = "claims"
	StepHistory     = "history"
	StepRecord      = "record"
	StepReleased    = "released"
	StepPurging     = "purging"
	StepPurgeMet    = "purge-met"
	StepHistoryGone = "history-gone"
	StepRecordGone  = "record-gone"
)

// errStale says that the Record changed since it was read: read again and decide again.
var errStale = errors.New("the record changed meanwhile")

// Write implements store.Store.
func (s *Site) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if len(ops) != 1 || ops[0].Unreferenced || len(ops[0].Requires) > 0 {
		return nil, store.ErrNotAtomic
	}
	if !s.engine.isSynced() {
		return nil, store.ErrNotReady
	}
	w := &write{site: s, op: ops[0], name: recordName(ops[0].Key)}
	number := s.index.open.open(s.engine.clock)
	result, err := w.run(ctx)
	var unsureUntil time.Time
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
		unsureUntil = s.engine.clock().Add(mayHappen)
	}
	s.index.open.close(number, result.Record.Updated, unsureUntil)
	if err != nil {
		return nil, err
	}
	return []store.Result{result}, nil
}

// write is one operation on its way. It starts from the index and trusts that
// only as far as the API server confirms it: a Record is replaced under the
// resourceVersion it was read at, and neither an error nor "nothing to do" is
// said before a fresh read agrees.
type write struct {
	site *Site
	op   store.Op
	name string
	// entered are the claims that this write entered into ledgers, listed those
	// that its Record lists in the end.
	entered, listed []recordsv1.HeldClaim
}

func (w *write) run(ctx context.Context) (store.Result, error) {
	current, fresh := w.site.index.lookup(w.name), false
	for attempt := 0; ; attempt++ {
		result, err := w.try(ctx, current)
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			// It may have happened: tried again, it would happen twice, and the Record
			// may list the claims.
			return store.Result{}, err
		}
		if err == nil && (fresh || result.Outcome != store.Unchanged) || err != nil && fresh && !errors.Is(err, errStale) {
			w.release(ctx, dropped(w.entered, w.listed))
			return result, err
		}
		if err = pause(ctx, attempt); err == nil {
			current, err = w.site.fetch(ctx, w.name)
		}
		if err != nil {
			w.release(ctx, dropped(w.entered, w.listed))
			return store.Result{}, err
		}
		fresh = true
	}
}

// pause spreads the attempts of writers that meet on one record.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return ctx.Err()
	}
	longest := time.Millisecond << min(attempt, 6)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("write under contention: %w: %w", store.ErrUnavailable, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// try makes one attempt from the given state of the record.
func (w *write) try(ctx context.Context, current *recordsv1.Record) (store.Result, error) {
	s := w.site
	if current != nil && current.Spec.Purging {
		if err := s.finishPurge(ctx, current); err != nil {
			return store.Result{}, err
		}
		current = nil
	}
	p, err := decide(w.op, current, s.limits, s.engine.clock(), newID)
	if err != nil {
		return store.Result{}, err
	}
	var before int64
	if current != nil {
		before = storedSize(&current.Spec)
	}
	if err := s.limits.admit(&p, before, s.index.usage(), s.engine.usage(), s.engine.limits); err != nil {
		return store.Result{}, err
	}
	p.next.SiteKey = s.key
	switch p.action {
	case doCreate:
		return w.create(ctx, p)
	case doUpdate:
		return w.update(ctx, p, current)
	case doAnnotate:
		return w.put(ctx, p, w.object(p.next, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID}), true)
	case doPurge:
		return w.purge(ctx, p, current)
	default:
		result := store.Result{Outcome: store.Unchanged}
		if current != nil {
			result.Record = toRecord(current)
		}
		return result, nil
	}
}

// create makes the Record of a record that never was. One that takes claims is
// made in two steps: an unfinished claim of it can then be fenced off.
func (w *write) create(ctx context.Context, p plan) (store.Result, error) {
	obj := w.object(p.next, metav1.ObjectMeta{})
	if len(p.next.Claims) == 0 {
		return w.put(ctx, p, obj, false)
	}
	placeholder := w.object(p.next, metav1.ObjectMeta{})
	placeholder.Spec.Purging, placeholder.Spec.Placeholder = true, true
	placeholder.Spec.Body, placeholder.Spec.Claims = "", nil
	meta, err := w.site.engine.client.create(ctx, recordsResource, w.site.namespace, placeholder)
	if err != nil {
		return store.Result{}, w.writeError(err)
	}
	placeholder.ObjectMeta = meta
	w.site.take(placeholder)
	w.site.engine.afterStep(StepPlaceholder)
	obj.ResourceVersion, obj.UID = meta.ResourceVersion, meta.UID
	if err := w.acquire(ctx, p.next.Claims, nil); err != nil {
		w.clear(ctx, placeholder)
		return store.Result{}, err
	}
	return w.put(ctx, p, obj, true)
}

// clear removes the placeholder of a create that did not get its claims. It is a
// courtesy: one that stays is removed by whoever meets it.
func (w *write) clear(ctx context.Context, placeholder *recordsv1.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err := w.site.finishPurge(ctx, placeholder); err != nil {
		slog.WarnContext(ctx, "removal of a placeholder is left to who meets it", "record", w.name, "error", err)
	}
}

// update supersedes a version: first it is written into the history, where it
// does not show while it is the newest, then the Record moves on. A crash in
// between is finished by the next write, which writes the same once more.
func (w *write) update(ctx context.Context, p plan, current *recordsv1.Record) (store.Result, error) {
	if err := w.acquire(ctx, p.next.Claims, current.Spec.Claims); err != nil {
		return store.Result{}, err
	}
	if err := w.site.addToHistory(ctx, current); err != nil {
		return store.Result{}, err
	}
	w.site.engine.afterStep(StepHistory)
	obj := w.object(p.next, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID})
	result, err := w.put(ctx, p, obj, true)
	if err != nil {
		return store.Result{}, err
	}
	w.release(ctx, dropped(current.Spec.Claims, p.next.Claims))
	return result, nil
}

// put writes the Record: over the state it names, or as a new object.
func (w *write) put(ctx context.Context, p plan, obj *recordsv1.Record, replace bool) (store.Result, error) {
	var meta metav1.ObjectMeta
	var err error
	if replace {
		meta, err = w.site.engine.client.update(ctx, recordsResource, w.site.namespace, w.name, obj)
	} else {
		meta, err = w.site.engine.client.create(ctx, recordsResource, w.site.namespace, obj)
	}
	if err != nil {
		if meta, err = w.recover(ctx, p, err); err != nil {
			return store.Result{}, err
		}
	}
	w.site.engine.afterStep(StepRecord)
	obj.ObjectMeta = meta
	w.site.take(obj)
	w.listed = obj.Spec.Claims
	return store.Result{Outcome: p.outcome, Record: toRecord(obj)}, nil
}

// recover looks whether a write that failed has happened all the same: a client
// that lost the answer repeats the request and is told of a conflict with itself.
func (w *write) recover(ctx context.Context, p plan, failed error) (metav1.ObjectMeta, error) {
	failed = w.writeError(failed)
	if !errors.Is(failed, errStale) && !errors.Is(failed, store.ErrUnavailable) {
		return metav1.ObjectMeta{}, failed
	}
	found, err := w.site.fetch(ctx, w.name)
	if err == nil && found != nil && found.Spec.Write == p.next.Write && !found.Spec.Purging {
		return found.ObjectMeta, nil
	}
	return metav1.ObjectMeta{}, failed
}

// purge removes a record for good: it disappears from every read with the first
// step, and whoever meets it afterwards finishes the rest.
func (w *write) purge(ctx context.Context, p plan, current *recordsv1.Record) (store.Result, error) {
	obj := w.object(current.Spec, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID})
	obj.Spec.Purging, obj.Spec.Body, obj.Spec.Claims = true, "", nil
	obj.Spec.Write = newID()
	meta, err := w.site.engine.client.update(ctx, recordsResource, w.site.namespace, w.name, obj)
	if err != nil {
		return store.Result{}, w.writeError(err)
	}
	obj.ObjectMeta = meta
	w.site.take(obj)
	w.site.engine.afterStep(StepPurging)
	if err := w.site.finishPurge(ctx, obj); err != nil {
		return store.Result{}, err
	}
	w.release(ctx, current.Spec.Claims)
	return store.Result{Outcome: p.outcome}, nil
}

func (w *write) object(spec recordsv1.RecordSpec, meta metav1.ObjectMeta) *recordsv1.Record {
	meta.Name, meta.Namespace, meta.ManagedFields = w.name, w.site.namespace, noManagedFields
	return &recordsv1.Record{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "Record"},
		ObjectMeta: meta, Spec: spec,
	}
}

// writeError tells a write that met another one from a write that failed.
func (w *write) writeError(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || isNotFound(err) {
		return errStale
	}
	return storeError("write record "+w.name, err)
}

// take puts this replica's own write into its index.
func (s *Site) take(obj *recordsv1.Record) {
	s.engine.count(s.index.apply(obj))
}

// addToHistory writes the newest version down in the RecordHistory, and takes
// out what the record gave up with its last write. Doing it again changes nothing.
func (s *Site) addToHistory(ctx context.Context, current *recordsv1.Record) error {
	spec := &current.Spec
	name := historyName(current.Name, spec.Lineage)
	past := supersede(spec)
	if spec.Version == 1 {
		_, err := s.engine.client.create(ctx, historiesResource, s.namespace, s.newHistory(name, current, past))
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return storeError("write history "+name, err)
		}
	}
	patch, err := historyPatch(spec, past)
	if err != nil {
		return fmt.Errorf("encode history %s: %w", name, err)
	}
	err = s.engine.client.mergePatch(ctx, historiesResource, s.namespace, name, patch)
	if isNotFound(err) {
		// Somebody purged the record, or removed its history by hand: whichever it
		// was, the guarded write of the Record tells.
		_, err = s.engine.client.create(ctx, historiesResource, s.namespace, s.newHistory(name, current, past))
	}
	if apierrors.IsAlreadyExists(err) {
		return errStale
	}
	return storeError("write history "+name, err)
}

func (s *Site) newHistory(name string, current *recordsv1.Record, past recordsv1.SupersededVersion) *recordsv1.RecordHistory {
	return &recordsv1.RecordHistory{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "RecordHistory"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, ManagedFields: noManagedFields},
		Spec: recordsv1.RecordHistorySpec{
			SiteKey: s.key, Record: current.Name, Lineage: current.Spec.Lineage,
			Versions: map[string]recordsv1.SupersededVersion{versionKey(current.Spec.Version): past},
		},
	}
}

// finishPurge removes what a purge left: the history first, the Record last. A
// placeholder is let go by its Record alone: its creator may be about to finish,
// and then there is a history, which is not for others to remove.
func (s *Site) finishPurge(ctx context.Context, obj *recordsv1.Record) error {
	s.engine.afterStep(StepPurgeMet)
	if !obj.Spec.Placeholder {
		history := historyName(obj.Name, obj.Spec.Lineage)
		if err := s.engine.client.delete(ctx, historiesResource, s.namespace, history, nil); err != nil {
			return storeError("remove history "+history, err)
		}
		s.engine.afterStep(StepHistoryGone)
	}
	err := s.engine.client.delete(ctx, recordsResource, s.namespace, obj.Name, &obj.ObjectMeta)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return storeError("remove record "+obj.Name, err)
	}
	s.engine.count(s.index.remove(obj.Name, obj.UID, s.engine.now()))
	s.engine.afterStep(StepRecordGone)
	return nil
}
