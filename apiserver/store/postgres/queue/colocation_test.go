package queue_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/colocationtest"
)

// statementsOfSeveralSites are the statements of a delivery process about several of the sites that it
// serves. Each of them joins rows of the same site only, so a divided database can run a part of it on each
// node. Statements with rows of one site would cost a round trip for each site. The others are about one site,
// but their plans do not show it.
var statementsOfSeveralSites = []colocationtest.Exception{
	{Contains: "FROM unnest($1::int4[]) s(site) OFFSET 0) w", EachSite: true, Reason: "It finds the sites with new events or due deliveries, every 20 to 160 ms."},
	{Contains: "SELECT c.site, c.key FROM unnest($1::int4[], $2::int8[]) c(site, key)", EachSite: true, Reason: "It finds the busy chains of a batch of jobs."},
	{Contains: "SELECT DISTINCT u.site, u.key FROM unnest($1::int4[], $2::int8[]) u(site, key)", EachSite: true, Reason: "It finds the next deliveries of the chains of a batch of results."},
	{Contains: "WITH ORDINALITY r(site, id, job, n)", EachSite: true, Reason: "It reads the deliveries of a batch of jobs."},
	{Contains: "UPDATE delivery d SET job = j.job, next = NULL FROM unnest($1::int4[]", EachSite: true, Reason: "It stores the jobs of a batch of deliveries."},
	{Contains: "r(site, webhook, id, job, tries, attempts, at)", EachSite: true, Reason: "It stores a batch of successful results."},
	{Contains: "r(site, id, job, status, tries, next, finished, attempts)", EachSite: true, Reason: "It stores a batch of results."},
	{Contains: "WITH ORDINALITY k(site, webhook, n)", EachSite: true, Reason: "It locks the webhooks of a batch of results."},
	{Contains: "s(site, webhook, failures, since, success, open, ended, probe)", EachSite: true, Reason: "It stores the states of the webhooks of a batch of results."},
	{Contains: "WHERE site = ANY($1::int4[]) AND probe = ANY($2::int8[])", EachSite: true, Reason: "It finds the webhooks of probes that ended without an attempt."},
	{Contains: "WHERE site = ANY($1::int4[]) AND open_until > 0", EachSite: true, Reason: "It finds the webhooks whose breaker may be tried again."},
	{Contains: "UPDATE webhook w SET probe = NULL WHERE site = ANY($1::int4[])", EachSite: true, Reason: "It finds the webhooks whose probe has no job any more."},
	{Contains: "site = (SELECT site FROM sites WHERE key = $1) AND ctid", Reason: "It has the site twice, by the same subquery (schema.Erase)."},
	{Contains: "WHERE w.site = ANY($1::int4[]) AND (w.pending", EachSite: true, Reason: "It finds the webhooks with pending deliveries."},
}

// checkStatements checks the statements of all pools of the database.
func (d *database) checkStatements(t *testing.T) {
	t.Helper()
	config, err := postgres.Config(d.uri)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	colocationtest.Check(t, conn, d.recorder, statementsOfSeveralSites)
}
