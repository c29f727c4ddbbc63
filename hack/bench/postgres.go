package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// databaseSearch is a search of a type with a query string.
type databaseSearch struct {
	name, typeName, query string
	// behind is how many records come before the page.
	behind int
	// perFloor and perStatic are goals: the minimum throughput relative to the floor handler and to
	// static responses. 0 means no goal.
	perFloor, perStatic float64
}

func (s databaseSearch) path() string { return "/" + strings.ToLower(s.typeName) + "?" + s.query }

// asked returns the engine's query for the page. If behind is set, it runs a search to find the
// position at which the page begins.
func (s databaseSearch) asked(ctx context.Context, site *postgres.Store) (store.Query, error) {
	values, err := url.ParseQuery(s.query)
	if err != nil {
		return store.Query{}, err
	}
	parsed, err := search.Parse(values, search.Options{Type: s.typeName, Now: time.Now()})
	if err != nil {
		return store.Query{}, err
	}
	query := store.Query{
		Types: parsed.Types, Where: parsed.Where, Sort: parsed.Sort, Count: parsed.Count, Total: parsed.Total,
		Includes: parsed.Includes, MaxIncluded: search.MaxCount,
	}
	if s.behind == 0 {
		return query, nil
	}
	query.Count = s.behind
	page, err := site.Search(ctx, query)
	query.Count, query.After = parsed.Count, page.Next
	return query, err
}

// statementsOf returns the statements that the engine sends for a search, and the query. It runs the
// search twice and returns the statements of the second run, because the engine caches which lists are
// long.
func (s databaseSearch) statementsOf(ctx context.Context, site *postgres.Store, watch *statements) ([]statement, store.Query, error) {
	query, err := s.asked(ctx, site)
	if err != nil {
		return nil, query, fmt.Errorf("%s: %w", s.name, err)
	}
	ask := func() error {
		_, err := site.Search(ctx, query)
		return err
	}
	if err := ask(); err != nil {
		return nil, query, fmt.Errorf("%s: %w", s.name, err)
	}
	sent, err := watch.of(ask)
	return sent, query, err
}

// deep returns the number of the deep page: deepPage, or a smaller one if the database has too few
// records.
func (d *database) deep() int { return min(deepPage, d.records/40) }

// aMonth and twoEnds find the Patients that were born in one month: one in 60.
const (
	aMonth  = "birthdate=2019-03&gender=other"
	twoEnds = "birthdate=ge2019-03-01&birthdate=le2019-03-31&gender=other"
)

// updatedIn returns the query for records that were updated in a range of times.
func updatedIn(from, until time.Time) string {
	at := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
	return "_lastUpdated=ge" + at(from) + "&_lastUpdated=lt" + at(until)
}

// rangesPerMonth returns ratios that compare ranges with two ends with a month in one parameter. The
// ranges of birth dates may take one and a half times as long.
func rangesPerMonth() []ratio {
	const goal = 1 / 1.5
	return []ratio{
		{"month by two ends and gender per month and gender", "month by two ends and gender", "month and gender", goal},
		{"the same, sorted by birthdate", "month by two ends and gender, sorted by birthdate", "month and gender, sorted by birthdate", goal},
		{"the same, sorted, per month and gender in the order of creation", "month by two ends and gender, sorted by birthdate", "month and gender", 0},
		{"updated between two times per month and gender", "updated between two times", "month and gender", 0},
		{"updated between two times, sorted by that, per month and gender", "updated between two times, sorted by that", "month and gender", 0},
	}
}

// databaseSearches returns the searches of docs/performance.md. The deep page is the last.
func databaseSearches(d *database) []databaseSearch {
	identifier := url.QueryEscape(fmt.Sprintf("https://clinic.example.org/patients|p-%07d", d.records/2))
	const patients, page = "Patient", "_total=none&_count=20"
	return []databaseSearch{
		{"one record by identifier", patients, "_total=none&identifier=" + identifier, 0, 0.75, 0.4},
		{"family prefix, page of 20", patients, page + "&family=okaf", 0, 0.75, 0.2},
		{"birthdate and gender, page of 20", patients, page + "&birthdate=ge2016-01-01&gender=male", 0, 0.75, 0.1},
		{"month and gender", patients, page + "&" + aMonth, 0, 0, 0},
		{"month by two ends and gender", patients, page + "&" + twoEnds, 0, 0, 0},
		{"month and gender, sorted by birthdate", patients, page + "&_sort=birthdate&" + aMonth, 0, 0, 0},
		{"month by two ends and gender, sorted by birthdate", patients, page + "&_sort=birthdate&" + twoEnds, 0, 0, 0},
		{"updated between two times", patients, page + "&" + updatedIn(d.loaded[0], d.loaded[1]), 0, 0, 0},
		{"updated between two times, sorted by that", patients, page + "&_sort=_lastUpdated&" + updatedIn(d.loaded[0], d.loaded[1]), 0, 0, 0},
		{"_tag, page of 20", patients, page + "&_tag=" + url.QueryEscape(recallTag), 0, 0, 0},
		{"_has, one record", "Practitioner", "_total=none&_has:Patient:general-practitioner:identifier=" + identifier, 0, 0, 0},
		{"chain, page of 20", patients, page + "&general-practitioner:Practitioner.family:exact=Okafor-16", 0, 0, 0},
		{"_include, page of 20", patients, page + "&_include=Patient:general-practitioner", 0, 0, 0},
		{"newest page of 20", patients, page, 0, 0.75, 0.25},
		{fmt.Sprintf("page %d of 20", d.deep()), patients, page, (d.deep() - 1) * 20, 0.75, 0},
	}
}

// withDatabase makes and fills a site in Postgres, and calls bench with it. It sets o.processes to the
// API server and the database, so that their processor time is reported. It stops the database at the
// end.
func withDatabase(ctx context.Context, o *options, in installation, bench func(*databaseBench) error) error {
	dir, err := os.MkdirTemp("", "paddock-bench-postgres")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d, err := newDatabase(ctx, *o, in, dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.server.Stop() }()
	token, err := in.paddock.Token(ctx, databaseSite, "editor", "paddock.health/"+databaseSite+"/"+databaseSite, 2*time.Hour)
	if err != nil {
		return err
	}
	o.processes = &processes{servers: []int{in.paddock.APIServers[0].Pid()}, database: d.server.Pid()}
	return bench(&databaseBench{
		database: d, site: newSite(in.paddock.URLs[0]+"/site/"+databaseSite+"/fhir", token), searches: databaseSearches(d),
	})
}

// benchPostgres compares a site in Postgres with raw statements, with a floor handler and
// with net/http that answers the same bytes.
func benchPostgres(ctx context.Context, o options, in installation) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return withDatabase(ctx, &o, in, func(b *databaseBench) error {
		if err := b.prepare(ctx, o.processes); err != nil {
			return err
		}
		if err := b.tellSize(ctx); err != nil {
			return err
		}
		before, err := b.cost(ctx, in)
		if err != nil {
			return err
		}
		results := measure(ctx, o, b.workloads(o))
		after, err := b.cost(ctx, in)
		if err != nil {
			return err
		}
		after.tell(before)
		return report(os.Stdout, o, results, b.ratios(results))
	})
}

// databaseBench has the clients and statements that the workloads need.
type databaseBench struct {
	database      *database
	site          *site
	floor, static *site
	searches      []databaseSearch
	// raw has the statements of each search, reads the statements of reads by id. deep is the path of
	// the deep page.
	raw   [][]statement
	reads [][]statement
	pool  *pgxpool.Pool
	deep  string
}

// prepare stores the responses of the searches and the statements that they send, and starts the
// baselines. It adds the processes of the baselines to all.
func (b *databaseBench) prepare(ctx context.Context, all *processes) error {
	answers, err := os.MkdirTemp("", "paddock-bench-answers")
	if err != nil {
		return err
	}
	if b.deep, err = b.site.pageAddress(ctx, b.searches[len(b.searches)-1].path(), b.database.deep()); err != nil {
		return err
	}
	for i, s := range b.searches {
		answer, err := b.site.send(ctx, http.MethodGet, b.path(s), nil, http.StatusOK)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %d bytes\n", s.name, len(answer))
		if err := os.WriteFile(filepath.Join(answers, fmt.Sprint(i)), answer, 0o600); err != nil {
			return err
		}
	}
	_, id, _ := record(b.database.records-1, b.database.practitioners())
	answer, err := b.site.send(ctx, http.MethodGet, "/patient/"+id, nil, http.StatusOK)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(answers, "read"), answer, 0o600); err != nil {
		return err
	}
	watch := &statements{}
	engine, pool, err := b.database.open(ctx, watch)
	if err != nil {
		return err
	}
	if b.reads, err = readsOf(ctx, b.database, engine, watch); err != nil {
		return err
	}
	for _, s := range b.searches {
		sent, _, err := s.statementsOf(ctx, engine, watch)
		if err != nil {
			return err
		}
		b.raw = append(b.raw, sent)
	}
	pool.Close()
	if _, b.pool, err = b.database.open(ctx, nil); err != nil {
		return err
	}
	return b.startBaselines(ctx, answers, all)
}

func (b *databaseBench) startBaselines(ctx context.Context, answers string, all *processes) error {
	address, static, err := startStatic(ctx, answers)
	if err != nil {
		return err
	}
	b.static = newSite(address, "none")
	description, err := json.Marshal(floorOf{b.database.uri, b.database.siteKey, b.database.records, b.database.loaded, answers})
	if err != nil {
		return err
	}
	address, floor, err := startSelf(ctx, "-floor", string(description))
	b.floor = newSite(address, "none")
	all.servers = append(all.servers, static, floor)
	return err
}

func (b *databaseBench) path(s databaseSearch) string {
	if s.behind > 0 {
		return b.deep
	}
	return s.path()
}

func (b *databaseBench) workloads(o options) []workload {
	get := func(from *site, path string) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			return from.do(ctx, http.MethodGet, path, nil, http.StatusOK)
		}
	}
	// The paths are made once, because processor time of the load generator affects the results.
	var paths []string
	for _, key := range b.database.sample() {
		paths = append(paths, "/"+key.Type+"/"+key.ID)
	}
	all := []workload{
		{"create: floor", func(ctx context.Context, n int) error {
			return b.floor.do(ctx, http.MethodPost, "/create", body(n), http.StatusCreated)
		}},
		{"create: Patient", b.site.create},
		{"create: Patient with address", func(ctx context.Context, n int) error {
			return b.site.do(ctx, http.MethodPost, "/patient", fullBody(n), http.StatusCreated)
		}},
		{"update: Patient", b.site.update},
		{"mix: 10 % create, 60 % read, 25 % update, 5 % delete", b.mix},
		{"read by id: raw", func(ctx context.Context, n int) error { return send(ctx, b.pool, b.reads[n%len(b.reads)]) }},
		{"read by id: floor", func(ctx context.Context, n int) error { return get(b.floor, fmt.Sprintf("/read/%d", n))(ctx, n) }},
		{"read by id: engine", func(ctx context.Context, n int) error { return get(b.floor, fmt.Sprintf("/engine/read/%d", n))(ctx, n) }},
		{"read by id: static", get(b.static, "/read")},
		{"read by id", func(ctx context.Context, n int) error { return get(b.site, paths[n%len(paths)])(ctx, n) }},
	}
	for i, s := range b.searches {
		all = append(all,
			workload{s.name + ": raw", func(ctx context.Context, _ int) error { return send(ctx, b.pool, b.raw[i]) }},
			workload{s.name + ": floor", get(b.floor, fmt.Sprintf("/search/%d", i))},
			workload{s.name + ": engine", get(b.floor, fmt.Sprintf("/engine/search/%d", i))},
			workload{s.name + ": static", get(b.static, fmt.Sprintf("/%d", i))},
			workload{s.name, get(b.site, b.path(s))},
		)
	}
	return selected(all, o.only)
}

// mix is a practice's day: of 20 requests 2 create, 12 read, 5 update and 1 deletes.
func (b *databaseBench) mix(ctx context.Context, n int) error {
	switch {
	case n%20 < 2:
		return b.site.create(ctx, n)
	case n%20 < 14:
		return b.site.read(ctx, n)
	case n%20 < 19:
		return b.site.update(ctx, n)
	default:
		_, id, _ := record(b.database.records-1-n/20%(b.database.records/2), b.database.practitioners())
		return b.site.do(ctx, http.MethodDelete, "/patient/"+id, nil, http.StatusOK)
	}
}

func (b *databaseBench) ratios(results map[string]*result) []ratio {
	all := []ratio{
		{"create per floor create", "create: Patient", "create: floor", 0.7},
		{"read by id per floor read", "read by id", "read by id: floor", 0.8},
		{"read by id per static answer", "read by id", "read by id: static", 0.6},
		{"read by id: engine alone per static answer", "read by id: engine", "read by id: static", 0},
		{"floor read per raw read", "read by id: floor", "read by id: raw", 0.4},
	}
	for _, s := range b.searches {
		all = append(all,
			ratio{s.name + " per floor", s.name, s.name + ": floor", s.perFloor},
			ratio{s.name + " per static answer", s.name, s.name + ": static", s.perStatic},
			ratio{s.name + ": engine alone per static answer", s.name + ": engine", s.name + ": static", 0},
			ratio{s.name + ": floor per raw", s.name + ": floor", s.name + ": raw", 0.4},
		)
	}
	return measured(append(all, rangesPerMonth()...), results)
}

// measured returns the ratios whose two workloads have results. It changes the slice all.
func measured(all []ratio, results map[string]*result) []ratio {
	return slices.DeleteFunc(all, func(r ratio) bool { return results[r.of] == nil || results[r.to] == nil })
}
