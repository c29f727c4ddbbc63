package sites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/move"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

const (
	// moveRetry is the pause before the work of a move is tried again: after a failure, or while another
	// API server does it.
	moveRetry = 500 * time.Millisecond
	// permanentRetry is that pause after a permanent failure, which lasts until a person removes the cause. Each
	// attempt can compare all records.
	permanentRetry = 5 * time.Second
	// firstLogPause is the time after the first failure of the work for which further failures are not logged.
	// The time doubles with each logged failure, up to maxLogPause.
	firstLogPause = time.Second
	maxLogPause   = 5 * time.Minute
	// moveReports is the least interval between two reports of progress. The report that work is done or
	// has failed is written at once.
	moveReports = time.Second
	// settledChanges is the number of records, copied or removed in a pass, up to which no further pass
	// of its kind is made. The rest is copied during the pause of writes.
	settledChanges = 300
	// maxPasses is the maximum number of passes of each kind in one attempt: passes of all records after
	// the first one, then passes of changed records, then passes during the pause of writes. At the
	// limit, the next kind follows. After the last kind, the attempt fails and is repeated.
	maxPasses = 8
	// maxPausedRecords is the number of records, tombstones included, up to which all are compared during
	// a pause of writes if it is not known which have changed. With more records, or if counting them
	// takes too long, the pause ends.
	maxPausedRecords = 10_000
	// maxClockSkew is how far the clock of the target may be behind the newest version. The copy waits
	// up to that time, so that later versions have later times. At the limit the attempt fails.
	maxClockSkew = 10 * time.Second
)

// mover does the work of one phase of a move, in the background.
type mover struct {
	sites     *Sites
	held      heldSite
	reference sitesv1.SiteMoveReference
	served    store.Store
	cancel    context.CancelFunc
	// copied is the number of records that this process has copied in all attempts. reported is the time
	// of its last report.
	copied   int64
	reported time.Time
	// pass is the number of passes that this process has begun in the attempt.
	pass int32
	// marks is the moment since which only changed records are compared. It is nil until a pass has
	// compared all records. digest is the digest of that pass.
	marks  *sitesv1.MoveMarks
	digest string
}

// follow starts the work of the current phase of a Site's move, and ends the work of an earlier phase.
// It starts none in a process that delivers events, while the Site has no store, or if the phase has
// no data to copy. The caller holds mu.
func (s *Sites) follow(ctx context.Context, siteID string, held heldSite, served store.Store) {
	current := s.movers[siteID]
	reference := held.object.Status.Move
	wanted := s.options.Delivery == nil && served != nil && reference != nil && reference.Copies()
	if current != nil {
		if wanted && current.reference == *reference && sameStorage(current.served, served) {
			return
		}
		current.cancel()
		delete(s.movers, siteID)
	}
	if !wanted {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	started := &mover{sites: s, held: held, reference: *reference, served: served, cancel: cancel}
	s.movers[siteID] = started
	go started.run(ctx, started.attempt)
}

// sameStorage reports whether two stores are of the same storage. The stores themselves cannot be
// compared: a store in the cluster is opened anew after each change of its Site.
func sameStorage(a, b store.Store) bool {
	placeA, _ := auditPlace(a)
	placeB, _ := auditPlace(b)
	return placeA == placeB
}

// run repeats an attempt of the work until it is done, or ctx ends. It logs a permanent error only once, and other
// errors less and less often (firstLogPause), because a database can be unreachable for days.
func (m *mover) run(ctx context.Context, attempt func(context.Context) error) {
	logged := ""
	var nextLog time.Time
	logPause := firstLogPause
	for ctx.Err() == nil {
		err := attempt(ctx)
		if err == nil {
			return
		}
		failed, pause := permanent(err), moveRetry
		if failed != "" {
			pause = permanentRetry
		}
		switch {
		case ctx.Err() != nil || errors.Is(err, errOtherMover):
		case failed == "":
			if now := time.Now(); !now.Before(nextLog) {
				slog.WarnContext(ctx, "the work of a move failed; the server will retry", "site", m.held.name(), "move", m.reference.Name, "phase", m.reference.Phase, "error", err)
				nextLog, logPause = now.Add(logPause), min(2*logPause, maxLogPause)
			}
		case failed != logged:
			slog.ErrorContext(ctx, "the work of a move cannot be done; the status of the SiteMove has the next step", "site", m.held.name(), "move", m.reference.Name, "phase", m.reference.Phase, "error", err)
			logged = failed
		}
		sleep(ctx, pause)
	}
}

// errOtherMover means that this API server cannot do the work now: another API server does it, the
// move is in another phase, or this server does not yet serve the Site from the storage of the phase.
// The attempt is repeated without a log line.
var errOtherMover = errors.New("another API server does the work of the move")

// attempt does the work once, while a session holds the lock of the move. If the other storage is in
// Postgres, it is the session of openOther, otherwise a session of the database that serves the Site.
// attempt reads the phase again when it has the lock, because the process may have been paused for
// long since it saw the phase. It reports a permanent error in the status of the SiteMove, and also
// returns it. Errors: errOtherMover, and those of openOther and work.
func (m *mover) attempt(ctx context.Context) error {
	object, err := m.read(ctx)
	if err != nil || m.isDone(object) {
		return err
	}
	other, closeOther, err := m.openOther(ctx, object)
	if err != nil {
		return err
	}
	defer closeOther()
	work := func(ctx context.Context, other store.Store) error {
		object, err := m.read(ctx)
		switch {
		case err != nil || m.isDone(object):
			return err
		case !m.isDue(object):
			return errOtherMover
		}
		err = m.work(ctx, object, other)
		if failed := permanent(err); failed != "" {
			return errors.Join(err, m.report(ctx, sitesv1.MoveCopy{Failed: failed}))
		}
		return err
	}
	serving, servedFromPostgres := m.served.(*database)
	switch opened := other.(type) {
	case *cluster.Store:
		if !servedFromPostgres {
			return errOtherMover // this server does not serve from the new storage yet
		}
		return serving.whileLocked(ctx, lockOf(object), func(ctx context.Context, held func(context.Context) error) error {
			return work(ctx, opened.Admitted(held))
		})
	case *database:
		if servedFromPostgres && serving.connection.SameDatabase(opened.connection) {
			return errOtherMover // this server still serves from that database
		}
	}
	return work(ctx, other)
}

// read reads the SiteMove from kube-apiserver.
func (m *mover) read(ctx context.Context) (*sitesv1.SiteMove, error) {
	var object sitesv1.SiteMove
	name := client.ObjectKey{Namespace: m.reference.NamespaceOr(m.held.object.Namespace), Name: m.reference.Name}
	return &object, m.sites.client.Get(ctx, name, &object)
}

// lockOf returns the name of the lock that an API server holds while it does the work of a move.
func lockOf(object *sitesv1.SiteMove) string { return "paddock move " + string(object.UID) }

// isDue reports whether the SiteMove is the one of the mover, and is in the phase and direction of its
// work.
func (m *mover) isDue(object *sitesv1.SiteMove) bool {
	return string(object.UID) == m.reference.UID && object.Status.Phase == m.reference.Phase && object.Status.Direction == m.reference.Direction
}

// isDone reports whether no work is left for the phase: an API server has finished it, or has reported
// that changes are lost, so that the controller must decide how the move goes on.
func (m *mover) isDone(object *sitesv1.SiteMove) bool {
	report := object.Status.Copy
	return report != nil && (report.Done || report.ChangesLost) && report.Phase == m.reference.Phase && report.Direction == m.reference.Direction
}

// servedFromNew reports whether the new storage of the move serves the Site.
func (m *mover) servedFromNew() bool {
	return m.reference.Phase == sitesv1.MoveSwitched || m.reference.Direction == sitesv1.MoveBack && !m.reference.Returned()
}

// permanent returns the text of an error that stays when the work is retried, and "" for any other
// error.
func permanent(err error) string {
	var different *move.DifferentError
	var limit *store.LimitError
	if errors.As(err, &different) || errors.As(err, &limit) || errors.Is(err, deliveries.ErrPending) || errors.Is(err, errOtherData) {
		return err.Error()
	}
	return ""
}

// openOther opens the storage of the move that does not serve the Site. In Postgres, the returned
// store has a single session, which holds the lock of the move. If that session ends, the API server
// can no longer write to the storage. The caller must call closeStore. Errors: errOtherMover,
// store.ErrUnavailable.
func (m *mover) openOther(ctx context.Context, object *sitesv1.SiteMove) (opened store.Store, closeStore func(), err error) {
	secret := sitesv1.MoveToName(object.Namespace)
	if m.servedFromNew() {
		from := object.Status.From
		if from == nil {
			return nil, nil, errOtherMover
		}
		if from.Type != sitesv1.StoragePostgres {
			return m.sites.options.Cluster.Open(object.Namespace, m.held.key, clusterLimits(from.Cluster)), func() {}, nil
		}
		secret = sitesv1.MoveFromName(object.Namespace)
	}
	connection, there := m.sites.namedConnection(ctx, m.held, secret)
	if !there {
		return nil, nil, fmt.Errorf("there is no Secret %s/%s with a valid connection for this Site; the status of the SiteMove may have the reason: %w", m.sites.options.Namespace, secret, store.ErrUnavailable)
	}
	db, err := m.sites.databases.openLocked(ctx, m.held.key, connection, lockOf(object))
	if errors.Is(err, postgres.ErrLocked) {
		return nil, nil, errOtherMover
	}
	if err != nil {
		return nil, nil, err
	}
	return db, db.close, nil
}

// storages returns the storage that serves the Site, and the other storage of the move.
func (m *mover) storages(other store.Store) (served, there move.Storage, err error) {
	served, isStorage := m.served.(move.Storage)
	there, alsoStorage := other.(move.Storage)
	if !isStorage || !alsoStorage {
		return nil, nil, fmt.Errorf("move the data of Site %s: its storages are a %T and a %T, and both must be a move.Storage", m.held.name(), m.served, other)
	}
	return served, there, nil
}

// work does the work of the phase and reports its end. Errors: those of move.Copier and of the
// engines.
func (m *mover) work(ctx context.Context, object *sitesv1.SiteMove, other store.Store) error {
	renamed, err := m.renamedWebhooks(ctx, object)
	if err != nil {
		return err
	}
	if m.reference.Phase == sitesv1.MoveSwitched || m.reference.Returned() {
		return m.copyPast(ctx, other, renamed)
	}
	source, target, err := m.storages(other)
	if err != nil {
		return err
	}
	copier := &move.Copier{Source: source, Target: target, Report: func(pass move.Pass) {
		if time.Since(m.reported) > moveReports {
			m.complain(ctx, m.report(ctx, m.progress(pass)))
		}
	}}
	if err := m.checkDataID(ctx, object); err != nil {
		return err
	}
	m.pass, m.marks = 0, nil
	if m.reference.Phase == sitesv1.MoveCopying {
		return m.copyServing(ctx, copier) // move_records.go
	}
	if former := object.Status.Copy; former != nil && former.Direction == m.reference.Direction {
		m.marks, m.digest = former.Marks, former.Digest
	}
	return m.catchUp(ctx, copier, other, renamed) // move_records.go
}

// errOtherData means that the database from which a move returns does not have the data that was moved to it.
// A copy from it would delete the records of the former storage.
var errOtherData = errors.New("the database that serves the Site does not have the data that was moved to it: " +
	"it is empty, or was created again. Restore it from a backup that was made after the switch")

// checkDataID checks, before a return to the former storage, that the database which serves the Site has the
// data that was moved to it. Errors: errOtherData, and those of the database.
func (m *mover) checkDataID(ctx context.Context, object *sitesv1.SiteMove) error {
	serving, isDatabase := m.served.(*database)
	if m.reference.Direction != sitesv1.MoveBack || object.Status.DataID == "" || !isDatabase {
		return nil
	}
	id, err := schema.DataID(ctx, serving.pool, m.held.key)
	if err == nil && id != object.Status.DataID {
		return errOtherData
	}
	return err
}

// awaitClock waits until a write to the target would be later than the newest version of the source,
// so that clients that poll by time miss nothing. It returns an error after maxClockSkew.
func awaitClock(ctx context.Context, target store.Store, newest time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, maxClockSkew)
	defer cancel()
	for {
		at, err := target.Watermark(ctx)
		if err != nil {
			return err
		}
		if at.After(newest) {
			return nil
		}
		if sleep(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("wait until the clock of the target storage, %s, passes the newest version, %s: %w", at.Format(time.RFC3339Nano), newest.Format(time.RFC3339Nano), ctx.Err())
		}
	}
}

// copyPending copies the pending deliveries, and the states of the webhooks' circuit breakers. It
// returns the number of deliveries. Errors: deliveries.ErrPending if the target cannot store them.
func (m *mover) copyPending(ctx context.Context, other store.Store, renamed webhookNames) (int64, error) {
	source, err := deliveryArchiveOf(ctx, m.served)
	if err != nil {
		return 0, err
	}
	target, err := deliveryArchiveOf(ctx, other)
	if err != nil {
		return 0, err
	}
	pending, err := source.DumpPending(ctx)
	if err != nil {
		return 0, err
	}
	ordered, err := m.orderedWebhooks(ctx, renamed)
	if err != nil {
		return 0, err
	}
	renamed.apply(pending.Deliveries)
	pending.States = renamed.states(pending.States)
	return int64(len(pending.Deliveries)), target.RestorePending(ctx, pending, func(webhook string) bool { return ordered[webhook] })
}

// orderedWebhooks has an entry for each webhook of the Site, by its id in the target: whether the
// webhook gets the events of a subject one at a time.
func (m *mover) orderedWebhooks(ctx context.Context, renamed webhookNames) (map[string]bool, error) {
	var hooks sitesv1.WebhookList
	if err := m.sites.client.List(ctx, &hooks, client.InNamespace(m.held.object.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Webhooks of namespace %s: %w", m.held.object.Namespace, err)
	}
	ordered := map[string]bool{}
	for i := range hooks.Items {
		hook := &hooks.Items[i]
		ordered[renamed.of(sitesv1.ResourceID("webhooks", hook.Namespace, hook.Name))] = hook.Spec.Ordering == sitesv1.OrderingPerSubject
	}
	return ordered, nil
}

func (m *mover) progress(pass move.Pass) sitesv1.MoveCopy {
	return sitesv1.MoveCopy{
		Pass: m.pass, Compared: pass.Compared, Total: m.served.Stats().Records, Copied: m.copied + pass.Copied,
		Marks: m.marks, Digest: m.digest,
	}
}

func (m *mover) complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "cannot report the progress of a move", "site", m.held.name(), "move", m.reference.Name, "error", err)
	}
}

// report writes the progress to the status of the SiteMove, by server-side apply of the field copy. It
// replaces the previous report as a whole.
func (m *mover) report(ctx context.Context, progress sitesv1.MoveCopy) error {
	progress.Direction, progress.Phase = m.reference.Direction, m.reference.Phase
	host, _ := os.Hostname() // only people read it, so it may be empty
	progress.Worker = host + "/" + strconv.Itoa(os.Getpid())
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&progress)
	if err != nil {
		return fmt.Errorf("encode the progress of SiteMove %s: %w", m.reference.Name, err)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": m.reference.NamespaceOr(m.held.object.Namespace), "name": m.reference.Name, "uid": m.reference.UID},
		"status":   map[string]any{"copy": fields},
	}}
	patch.SetGroupVersionKind(sitesv1.GroupVersion.WithKind("SiteMove"))
	if err := m.sites.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("report the progress of SiteMove %s: %w", m.reference.Name, err)
	}
	m.reported = time.Now()
	return nil
}

// lockPing is the interval between two checks of the session that holds a lock. lockTimeout is the
// time limit of one check, and of closing the session.
const (
	lockPing    = time.Second
	lockTimeout = 5 * time.Second
)

// whileLocked calls work while a session of its own holds an advisory lock of the database. work can
// call held, which returns an error if that session has ended. If the session ends, the context of
// work ends too, after at most lockPing and lockTimeout together. Errors: errOtherMover if another
// session holds the lock, and those of work.
func (d *database) whileLocked(ctx context.Context, name string, work func(ctx context.Context, held func(context.Context) error) error) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// The connection is closed instead of released, so that the lock ends with it in any case.
	hijacked := conn.Hijack()
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
		defer cancel()
		_ = hijacked.Close(closing) // the server ends the session in any case
	}()
	switch ours, err := postgres.TryLock(ctx, hijacked, name); {
	case err != nil:
		return err
	case !ours:
		return errOtherMover
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	held := func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		ping, stop := context.WithTimeout(ctx, lockTimeout)
		defer stop()
		if err := hijacked.Ping(ping); err != nil {
			return fmt.Errorf("the session with the lock of the move has ended: %w: %w", store.ErrUnavailable, err)
		}
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if held(ctx) != nil {
				cancel()
			}
			sleep(ctx, lockPing)
		}
	}()
	err = work(ctx, held)
	cancel()
	<-ended
	return err
}
