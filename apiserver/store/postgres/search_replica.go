package postgres

import (
	"context"
	"errors"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// searchReplica runs a search on a read replica if the query accepts its lag. answered reports
// whether the replica answered. If it did not, the primary must answer. Of the errors of a replica,
// only store.ErrQueryTimeout is an answer: repeating a search that takes too long would double its
// cost.
func (s *Store) searchReplica(search sqlplan.Search) (page store.Page, answered bool, err error) {
	query := search.Query
	if s.replicas == nil || query.MaxLag <= 0 || query.Consistent || query.ByTime() || !s.replicaShare.tryAcquire() {
		return store.Page{}, false, nil
	}
	defer s.replicaShare.release()
	if !s.replicas.sessions.tryAcquire() {
		return store.Page{}, false, nil
	}
	defer s.replicas.sessions.release()
	caller := search.Context
	// Half of the time remains for the primary if the replica does not answer.
	ctx, cancel := context.WithTimeout(caller, s.timeout/2)
	defer cancel()
	replica, err := s.replicas.acquire(ctx, s, min(query.MaxLag, maxProvenLag))
	if err != nil {
		s.replicas.noteUnused(caller, err)
		return store.Page{}, false, nil
	}
	defer replica.Release()
	index := s.planIndex
	index.Database = planDatabase{s, replica, func() indexrow.Earlier { return replica.earlier }}
	search.Context, search.Index = ctx, &index
	r := &searcher{Search: search, site: s, from: replica, onReplica: true}
	page, err = r.search()
	switch {
	case err == nil:
		s.replicas.answered.Add(1)
		page.Lag = replica.lag
		return page, true, nil
	case isQueryLimit(err) || errors.Is(err, store.ErrQueryTimeout):
		s.replicas.answered.Add(1)
		return store.Page{}, true, searchError(err)
	default:
		s.replicas.failed.Add(1)
		return store.Page{}, false, nil
	}
}
