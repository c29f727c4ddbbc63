package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

const (
	// fewRecords is the number of records in the small database, with which the one of -records is
	// compared.
	fewRecords = 10_000
	// rareRecords is the approximate number of records that the searches match in either database.
	rareRecords = 200
)

var (
	familyElement = regexp.MustCompile(`"family":"[^"]*"`)
	birthDate     = regexp.MustCompile(`"birthDate":"\d{4}`)
	gender        = regexp.MustCompile(`"gender":"[a-z]*"`)
)

// makeRare changes a Patient so that the searches match it.
func makeRare(text []byte) []byte {
	text = familyElement.ReplaceAll(text, []byte(`"family":"Zaragoza"`))
	text = birthDate.ReplaceAll(text, []byte(`"birthDate":"1950`))
	return gender.ReplaceAll(text, []byte(`"gender":"male"`))
}

// benchGrowth compares the engine on a small and a large database, by searches with the same number of
// matches.
func benchGrowth(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "paddock-bench-postgres")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, Settings: benchSettings})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	var all []workload
	var ratios []ratio
	for _, records := range []int{fewRecords, o.records} {
		d := &database{server: server, siteKey: "growth", records: records, rare: rareRecords}
		if err := d.create(ctx, fmt.Sprintf("of%d", records)); err != nil {
			return err
		}
		site, pool, err := d.open(ctx, nil)
		if err != nil {
			return err
		}
		defer pool.Close()
		workloads, err := growthWorkloads(ctx, d, site)
		if err != nil {
			return err
		}
		for _, w := range workloads {
			name := w.name
			w.name = fmt.Sprintf("%s, of %d", name, records)
			all = append(all, w)
			if records != fewRecords {
				ratios = append(ratios, ratio{name, w.name, fmt.Sprintf("%s, of %d", name, fewRecords), 1 / 1.5})
			}
		}
	}
	return report(os.Stdout, o, measure(ctx, o, selected(all, o.only)), ratios)
}

// create makes a database with the schema, and fills it.
func (d *database) create(ctx context.Context, name string) error {
	if _, err := d.server.CreateDatabase(ctx, name, name); err != nil {
		return err
	}
	d.uri = d.server.URL(name)
	conn, err := pgx.Connect(ctx, d.uri)
	if err != nil {
		return err
	}
	_, err = schema.Migrate(ctx, conn)
	_ = conn.Close(ctx)
	if err != nil {
		return err
	}
	return d.fill(ctx)
}

// growthWorkloads returns reads, and searches with about the same number of matches in a database of
// any size.
func growthWorkloads(ctx context.Context, d *database, site *postgres.Store) ([]workload, error) {
	sample := d.sample()
	all := []workload{{"read by id", func(ctx context.Context, n int) error {
		_, err := site.Get(ctx, sample[n%len(sample)])
		return err
	}}}
	const page = "_total=none&_count=20"
	searches := []databaseSearch{
		databaseSearches(d)[0],
		{name: "family prefix, page of 20", query: page + "&family=zara"},
		{name: "birthdate and gender, page of 20", query: page + "&birthdate=lt1960-01-01&gender=male"},
		{name: "family prefix, sorted by birthdate", query: page + "&family=zara&_sort=birthdate"},
		{name: "newest page of 20", query: page},
		{name: "200th page of 20", query: page, behind: 199 * 20},
	}
	for _, search := range searches {
		search.typeName = "Patient"
		query, err := search.asked(ctx, site)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", search.name, err)
		}
		found, err := site.Search(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", search.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s in the database of %d records: found %d\n", search.name, d.records, len(found.Records))
		all = append(all, workload{search.name, func(ctx context.Context, _ int) error {
			_, err := site.Search(ctx, query)
			return err
		}})
	}
	return all, nil
}

// text returns the n-th record. Some are rare if d.rare is set.
func (d *database) text(n int) (typeName, id string, text []byte) {
	typeName, id, text = record(n, d.practitioners())
	if d.rare > 0 && typeName == "Patient" && n%(d.records/d.rare) == 0 {
		text = makeRare(bytes.Clone(text))
	}
	return typeName, id, text
}
