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
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// The steps of a write. Options.AfterStep is called with a step when the step is done. StepPurgeMet is
// done when a purged Record or a placeholder was found, before any of its objects is removed.
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

// errConflict means that the Record changed after it was read. The caller must read it and decide
// again.
var errConflict = errors.New("the record changed after it was read")

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	if len(ops) != 1 || ops[0].Unreferenced || len(ops[0].Requires) > 0 {
		return nil, store.ErrNotAtomic
	}
	if !s.engine.isSynced() {
		return nil, store.ErrNotReady
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	if ops[0].Kind == store.Purge && ops[0].Erase {
		return s.erase(ctx, ops[0])
	}
	return s.writeOne(ctx, ops[0])
}

func (s *Store) writeOne(ctx context.Context, op store.Op) ([]store.Result, error) {
	w := &write{site: s, op: op, name: recordName(op.Key)}
	number := s.index.open.open(s.engine.clock)
	result, err := w.run(ctx)
	var uncertainUntil time.Time
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
		uncertainUntil = s.engine.clock().Add(uncertainFor)
	}
	s.index.open.close(number, result.Record.Updated, uncertainUntil)
	if err != nil {
		return nil, err
	}
	return []store.Result{result}, nil
}

// write is one operation in progress. It starts from the state in the index. The index may be
// outdated, so a Record is replaced only if it still has the resourceVersion that was read. An
// error, or the outcome Unchanged, is returned only if a read from kube-apiserver confirms it.
// store.ErrUnavailable and the error of a context are returned without that read.
type write struct {
	site *Store
	op   store.Op
	name string
	// entered are the claims that this write added to RecordClaims. listed are the claims that the
	// Record lists after the write.
	entered, listed []recordsv1.HeldClaim
}

func (w *write) run(ctx context.Context) (store.Result, error) {
	current, fresh := w.site.index.lookup(w.name), false
	for attempt := 0; ; attempt++ {
		result, err := w.attempt(ctx, current)
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			// The write may have happened. So it must not be retried, and the claims must not be released,
			// because the Record may list them.
			return store.Result{}, err
		}
		if err == nil && (fresh || result.Outcome != store.Unchanged) || err != nil && fresh && !errors.Is(err, errConflict) {
			w.release(ctx, droppedClaims(w.entered, w.listed))
			return result, err
		}
		if err = backoff(ctx, attempt); err == nil {
			current, err = w.site.fetch(ctx, w.name)
		}
		if err != nil {
			w.release(ctx, droppedClaims(w.entered, w.listed))
			return store.Result{}, err
		}
		fresh = true
	}
}

// backoff waits for a random time below 2^attempt ms, at most 64 ms. It does not wait at attempt 0.
func backoff(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return ctx.Err()
	}
	longest := time.Millisecond << min(attempt, 6)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait before another attempt of a write: %w: %w", store.ErrUnavailable, ctx.Err())
	case <-timer.C:
		return nil
	}
}

func (w *write) attempt(ctx context.Context, current *recordsv1.Record) (store.Result, error) {
	s := w.site
	if err := s.admit(ctx); err != nil {
		return store.Result{}, err
	}
	// remains is the Record of a purged record whose events were not relayed yet. It is nil if there
	// is none.
	var remains *recordsv1.Record
	if current != nil && current.Spec.Purging {
		if err := s.finishPurge(ctx, current); err != nil {
			return store.Result{}, err
		}
		if current.Spec.HasEvents {
			remains = current
		}
		current = nil
	}
	p, err := decide(w.op, current, s.limits, s.engine.clock(), newID)
	if err != nil {
		return store.Result{}, err
	}
	if p.Action == store.ActionUpdate {
		s.index.setHistoryLabels(&current.Spec, &p.next)
	}
	if err := w.addEvents(&p, current, remains); err != nil {
		return store.Result{}, err
	}
	var before usage
	switch {
	case current != nil:
		before = usageOf(&current.Spec)
	case remains != nil:
		before = usageOf(&remains.Spec)
	}
	if err := w.checkLimits(ctx, &p, before); err != nil {
		return store.Result{}, err
	}
	p.next.SiteKey = s.key
	switch p.Action {
	case store.ActionCreate:
		return w.create(ctx, p, remains)
	case store.ActionUpdate:
		return w.update(ctx, p, current)
	case store.ActionAnnotate:
		return w.put(ctx, p, w.object(p.next, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID}), true)
	case store.ActionPurge:
		return w.purge(ctx, p, current)
	default:
		return store.Result{Outcome: p.Outcome, Record: p.After}, nil
	}
}

// create creates the Record of a new record. If remains is not nil, create replaces it and keeps
// its events. For a Record with claims, create first writes a placeholder, then adds the claims to
// their RecordClaims, and then replaces the placeholder. If this write takes too long, another writer
// that needs a claim changes the placeholder, so that the last step fails (isActive).
func (w *write) create(ctx context.Context, p plan, remains *recordsv1.Record) (store.Result, error) {
	var over metav1.ObjectMeta
	if remains != nil {
		over = metav1.ObjectMeta{ResourceVersion: remains.ResourceVersion, UID: remains.UID}
	}
	obj := w.object(p.next, over)
	if len(p.next.Claims) == 0 {
		return w.put(ctx, p, obj, remains != nil)
	}
	vacant := p.next
	vacant.Purging, vacant.Placeholder = true, true
	vacant.Body, vacant.Claims, vacant.Events = "", nil, p.carried
	placeholder := w.object(vacant, over)
	var meta metav1.ObjectMeta
	var err error
	if remains != nil {
		meta, err = w.site.engine.client.Update(ctx, objects.Records, w.site.namespace, w.name, placeholder)
	} else {
		meta, err = w.site.engine.client.Create(ctx, objects.Records, w.site.namespace, placeholder)
	}
	if err != nil {
		return store.Result{}, w.writeError(err)
	}
	placeholder.ObjectMeta = meta
	w.site.applyOwnWrite(placeholder)
	w.site.engine.afterStep(StepPlaceholder)
	obj.ResourceVersion, obj.UID = meta.ResourceVersion, meta.UID
	if err := w.acquire(ctx, p.next.Claims, nil); err != nil {
		w.removePlaceholder(ctx, placeholder)
		return store.Result{}, err
	}
	return w.put(ctx, p, obj, true)
}

// removePlaceholder removes the placeholder of a create that did not get its claims. If the removal
// fails, the next write of the record or the sweep removes the placeholder.
func (w *write) removePlaceholder(ctx context.Context, placeholder *recordsv1.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), objects.Timeout)
	defer cancel()
	if err := w.site.finishPurge(ctx, placeholder); err != nil {
		slog.WarnContext(ctx, "cannot remove the placeholder of a failed create; the next write of the record removes it", "namespace", w.site.namespace, "record", w.name, "error", err)
	}
}

// update writes a new version. It acquires the claims, and adds the superseded version to the history,
// where reads ignore that version as long as it is the newest one. Then it changes the Record, and at
// last it releases claims. If the process crashes before the Record is changed, the next write adds
// the same version to the history again.
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
	w.release(ctx, droppedClaims(current.Spec.Claims, p.next.Claims))
	return result, nil
}

// put writes the Record. If replace is true, it replaces the state with the resourceVersion of obj.
// Otherwise it creates the Record.
func (w *write) put(ctx context.Context, p plan, obj *recordsv1.Record, replace bool) (store.Result, error) {
	var meta metav1.ObjectMeta
	var err error
	if replace {
		meta, err = w.site.engine.client.Update(ctx, objects.Records, w.site.namespace, w.name, obj)
	} else {
		meta, err = w.site.engine.client.Create(ctx, objects.Records, w.site.namespace, obj)
	}
	obj.ObjectMeta = meta
	if err != nil {
		if obj, err = w.checkWritten(ctx, p, err); err != nil {
			return store.Result{}, err
		}
	}
	w.site.engine.afterStep(StepRecord)
	w.site.applyOwnWrite(obj)
	w.listed = obj.Spec.Claims
	return store.Result{Outcome: p.Outcome, Record: toRecord(obj)}, nil
}

// checkWritten returns the Record if a write that seems to have failed has happened, and an error
// otherwise. A write that has happened seems to have failed if the response to its request was lost:
// the Kubernetes client then repeats the request, and gets a conflict with its own write. The returned
// Record can lack the events of the write, if they have been relayed since.
func (w *write) checkWritten(ctx context.Context, p plan, failed error) (*recordsv1.Record, error) {
	failed = w.writeError(failed)
	if !errors.Is(failed, errConflict) && !errors.Is(failed, store.ErrUnavailable) {
		return nil, failed
	}
	found, err := w.site.fetch(ctx, w.name)
	if err == nil && found != nil && found.Spec.Write == p.next.Write && !found.Spec.Purging {
		return found, nil
	}
	return nil, failed
}

// purge removes a record. The first step hides it from all reads. If the process crashes after that
// step, the next write of the record or the sweep finishes the purge. The Record is kept until its
// events were relayed.
func (w *write) purge(ctx context.Context, p plan, current *recordsv1.Record) (store.Result, error) {
	obj := w.object(current.Spec, metav1.ObjectMeta{ResourceVersion: current.ResourceVersion, UID: current.UID})
	obj.Spec.Purging, obj.Spec.Body, obj.Spec.Claims = true, "", nil
	obj.Spec.Write = newID()
	setEvents(&obj.Spec, p.next.Events)
	meta, err := w.site.engine.client.Update(ctx, objects.Records, w.site.namespace, w.name, obj)
	if err != nil {
		return store.Result{}, w.writeError(err)
	}
	obj.ObjectMeta = meta
	w.site.applyOwnWrite(obj)
	w.site.engine.afterStep(StepPurging)
	if err := w.site.finishPurge(ctx, obj); err != nil {
		return store.Result{}, err
	}
	w.release(ctx, current.Spec.Claims)
	return store.Result{Outcome: p.Outcome}, nil
}

func (w *write) object(spec recordsv1.RecordSpec, meta metav1.ObjectMeta) *recordsv1.Record {
	setEvents(&spec, spec.Events)
	meta.Name, meta.Namespace, meta.ManagedFields = w.name, w.site.namespace, objects.NoManagedFields
	return &recordsv1.Record{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "Record"},
		ObjectMeta: meta, Spec: spec,
	}
}

// writeError returns errConflict if a write failed because of a concurrent write, and otherwise the
// error that objects.StoreError returns.
func (w *write) writeError(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return errConflict
	}
	return objects.StoreError("write record "+w.name, err)
}

// applyOwnWrite adds a write of this replica to the index.
func (s *Store) applyOwnWrite(obj *recordsv1.Record) {
	s.engine.addUsage(s.index.apply(obj))
}

// addToHistory adds the newest version to the RecordHistory. It also removes the versions that the
// previous write of the record dropped because of the limits. It is idempotent.
func (s *Store) addToHistory(ctx context.Context, current *recordsv1.Record) error {
	spec := &current.Spec
	name := objects.HistoryName(current)
	past := supersede(spec)
	if spec.Version == 1 {
		_, err := s.engine.client.Create(ctx, objects.Histories, s.namespace, s.newHistory(name, current, past))
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return objects.StoreError("write history "+name, err)
		}
	}
	patch, err := historyPatch(spec, past)
	if err != nil {
		return fmt.Errorf("encode history %s: %w", name, err)
	}
	_, err = s.engine.client.MergePatch(ctx, objects.Histories, s.namespace, name, patch)
	if apierrors.IsNotFound(err) {
		// The record was purged, or another program deleted its RecordHistory. If the record was purged,
		// the write of the Record that follows fails with a conflict.
		_, err = s.engine.client.Create(ctx, objects.Histories, s.namespace, s.newHistory(name, current, past))
	}
	if apierrors.IsAlreadyExists(err) {
		return errConflict
	}
	return objects.StoreError("write history "+name, err)
}

func (s *Store) newHistory(name string, current *recordsv1.Record, past recordsv1.SupersededVersion) *recordsv1.RecordHistory {
	return &recordsv1.RecordHistory{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "RecordHistory"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, ManagedFields: objects.NoManagedFields},
		Spec: recordsv1.RecordHistorySpec{
			SiteKey: s.key, Record: current.Name, Lineage: current.Spec.Lineage,
			Versions: map[string]recordsv1.SupersededVersion{versionKey(current.Spec.Version): past},
		},
	}
}

// finishPurge removes the objects of a purged record, the history first and the Record last. It keeps
// a Record with events, which the delivery process removes. For a placeholder it removes only the
// Record: if the creator of the placeholder has finished in the meantime, the history belongs to the
// new record. Errors: errConflict if the Record has changed, and those of objects.StoreError.
func (s *Store) finishPurge(ctx context.Context, obj *recordsv1.Record) error {
	s.engine.afterStep(StepPurgeMet)
	if !obj.Spec.Placeholder {
		history := objects.HistoryName(obj)
		if err := s.engine.client.Delete(ctx, objects.Histories, s.namespace, history, nil); err != nil {
			return objects.StoreError("remove history "+history, err)
		}
		s.engine.afterStep(StepHistoryGone)
	}
	if obj.Spec.HasEvents {
		return nil // the delivery process removes the Record after it has handed the events on
	}
	err := s.engine.client.Delete(ctx, objects.Records, s.namespace, obj.Name, &obj.ObjectMeta)
	if apierrors.IsConflict(err) {
		return errConflict
	}
	if err != nil {
		return objects.StoreError("remove record "+obj.Name, err)
	}
	s.engine.addUsage(s.index.remove(obj.Name, obj.UID, keyOf(obj), 0, s.engine.now()))
	s.engine.afterStep(StepRecordGone)
	return nil
}
