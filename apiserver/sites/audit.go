package sites

import (
	"context"
	"sync"
	"time"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

const (
	// defaultRetention is how long audit entries are kept if the Site does not set it.
	defaultRetention = 90 * 24 * time.Hour
	// closeAudit is the time limit for closing the log of a Site that is no longer served. Entries that
	// are not stored by then are lost.
	closeAudit = 10 * time.Second
)

// auditLog is the log of a served Site. place identifies its storage: see auditPlace.
type auditLog struct {
	*audit.Log
	place any
}

// auditPlace returns the place of the audit log of a store, and a function that opens the log. Stores
// with equal places have the same log. Both results are nil if records is nil.
func auditPlace(records store.Store) (place any, storage func() audit.Storage) {
	switch opened := records.(type) {
	case *database:
		return opened, func() audit.Storage { return databaseAudit{opened} }
	case *cluster.Store:
		return opened.Place(), opened.Audit
	default:
		return nil, nil
	}
}

// auditOf returns the log of a Site, nil while its storage is not open. A log lives until its Site is
// no longer served, or its storage is no longer open. If the Site's storage changes, for example its
// credentials, the log moves to the new storage, with the entries of requests in progress. The caller
// holds mu.
func (s *Sites) auditOf(siteID string, object *sitesv1.Site, records store.Store) *audit.Log {
	place, storage := auditPlace(records)
	if place == nil {
		s.endAudit(siteID)
		return nil
	}
	settings := auditSettings(&object.Spec.Audit, object.Spec.Retention)
	log, there := s.audits[siteID]
	if !there {
		log = auditLog{audit.NewLog(object.Namespace+"/"+object.Name, storage(), settings), place}
	} else if log.place != place {
		log.Move(storage())
		log.place = place
	}
	log.Configure(settings)
	s.audits[siteID] = log
	return log.Log
}

// endAudit closes the log of a siteID in the background, if there is one. The caller holds mu.
func (s *Sites) endAudit(siteID string) {
	before, there := s.audits[siteID]
	if !there {
		return
	}
	delete(s.audits, siteID)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeAudit)
		defer cancel()
		before.Close(ctx)
	}()
}

func auditSettings(spec *sitesv1.Audit, retention *sitesv1.Retention) audit.Settings {
	settings := audit.Settings{
		Retention:  defaultRetention,
		Continue:   spec.OnFailure == sitesv1.AuditContinue,
		Parameters: spec.Level == sitesv1.AuditRequest,
	}
	if spec.Retention != nil {
		settings.Retention = spec.Retention.Duration
	}
	if retention != nil && retention.Audit != nil {
		settings.Retention = retention.Audit.Duration
	}
	return settings
}

// CloseAudit stores the pending entries of the audit logs of all Sites and closes the logs. Entries
// that are not stored when ctx ends are lost.
func (s *Sites) CloseAudit(ctx context.Context) {
	s.mu.Lock()
	logs := s.audits
	s.audits = map[string]auditLog{}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, log := range logs {
		all.Go(func() { log.Close(ctx) })
	}
	all.Wait()
}

// databaseAudit is the storage of the log of a Site in Postgres.
type databaseAudit struct{ *database }

var _ audit.WithWrites = databaseAudit{}

// StoresWithWrites implements audit.WithWrites.
func (databaseAudit) StoresWithWrites() {}

// Append implements audit.Storage.
func (d databaseAudit) Append(ctx context.Context, entries []*audit.Entry) error {
	site, err := d.opened(ctx)
	if err != nil {
		return err
	}
	return site.Audit().Append(ctx, entries)
}

// Trim implements audit.Storage.
func (d databaseAudit) Trim(ctx context.Context, retention time.Duration) error {
	site, err := d.opened(ctx)
	if err != nil {
		return err
	}
	return site.Audit().Trim(ctx, retention)
}

// Search implements audit.Storage.
func (d databaseAudit) Search(ctx context.Context, query audit.Query) ([]audit.Entry, error) {
	return with(ctx, d.database, func(site *postgres.Store) ([]audit.Entry, error) { return site.Audit().Search(ctx, query) })
}
