package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

func gendered(id, gender string) store.Op {
	const body = `{"Tokens":{"gender":[{"System":"genders","Code":%q}],"telecom":[{"System":"phone","Code":%[2]q}],"phone":[{"System":"phone","Code":%[2]q}]}}`
	return store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: id}, Body: store.Body{JSON: fmt.Appendf(nil, body, gender, id)}}
}

// tokenSearches are conditions by common codes and others, with the ids of the records that they find
// among: female f1 and f2, male m1, other o1.
var tokenSearches = map[string]struct {
	where store.Condition
	want  []string
}{
	"common code":                {genderIs("female"), []string{"f1", "f2"}},
	"common code and its system": {store.TokenIs{Param: "gender", System: new("genders"), Code: new("male")}, []string{"m1"}},
	"another system":             {store.TokenIs{Param: "gender", System: new("others"), Code: new("male")}, nil},
	"other code":                 {genderIs("other"), []string{"o1"}},
	"two common codes":           {store.Any{genderIs("female"), genderIs("male")}, []string{"f1", "f2", "m1"}},
	"common code and other":      {store.Any{genderIs("male"), genderIs("other")}, []string{"m1", "o1"}},
	"none of two common codes":   {store.Not{Condition: store.Any{genderIs("female"), genderIs("male")}}, []string{"o1"}},
	"no common code":             {store.Not{Condition: genderIs("female")}, []string{"m1", "o1"}},
	"two conditions":             {store.All{genderIs("female"), store.TokenIs{Param: "telecom", Code: new("f1")}}, []string{"f1"}},
	"union":                      {store.TokenIs{Param: "telecom", Code: new("m1")}, []string{"m1"}},
	"part":                       {store.TokenIs{Param: "phone", Code: new("m1")}, []string{"m1"}},
	"two of a union":             {store.Any{store.TokenIs{Param: "telecom", Code: new("m1")}, store.TokenIs{Param: "telecom", Code: new("o1")}}, []string{"m1", "o1"}},
}

func genderIs(code string) store.TokenIs { return store.TokenIs{Param: "gender", Code: &code} }

// findTokens searches by tokenSearches, by lists and by scans.
func findTokens(t *testing.T, when string, site *postgres.Store) {
	t.Helper()
	for _, limit := range []int{1750, 1} {
		site.SetPlanLimits(limit, limit, limit)
		for name, search := range tokenSearches {
			for _, by := range []store.SortField{store.SortCreated, store.SortID} {
				page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: search.where, Sort: []store.Sort{{Field: by}}, Count: 10, Total: store.TotalAccurate})
				if err != nil {
					t.Fatalf("%s: %s: %v", when, name, err)
				}
				var got []string
				for _, r := range page.Records {
					got = append(got, r.Key.ID)
				}
				slices.Sort(got)
				if diff := cmp.Diff(search.want, got); diff != "" || int(page.Total) != len(search.want) {
					t.Errorf("%s: %s, lists of up to %d: total %d, found (-want +got):\n%s", when, name, limit, page.Total, diff)
				}
			}
		}
	}
}

// TestUpgradeOfTokens upgrades a database in which tokens have all rows, while a server of that release
// writes. What that server does is imitated by statements that leave out what is new.
func TestUpgradeOfTokens(t *testing.T) {
	t.Parallel()
	key := uuid.NewString()
	pool := upgradedFrom(t, key, beforeCodes)
	count := func(sql string) (n int) {
		t.Helper()
		must(t, pool.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	site, stale := open(t, pool, key, withFacets()), open(t, pool, key, withFacets())
	writeAll(t, site, gendered("f1", "female"), gendered("f2", "female"), gendered("m1", "male"), gendered("o1", "other"))
	if n := count(`SELECT count(*) FROM ix_tok`); n != 12 {
		t.Errorf("%d tokens that the earlier release finds, want 12", n)
	}
	findTokens(t, "during the upgrade", site)
	var entries []audit.Entry
	appendEntry := func(asJSON bool) {
		t.Helper()
		entries = append(entries, audit.Entry{Time: time.Now().UTC().Truncate(time.Microsecond), ID: int64(len(entries) + 1), Site: "oak", Caller: "vet", Subject: audit.User, API: "fhir", Interaction: "create", Action: audit.Create, Method: "POST", Type: patient, Status: 201, Records: patient + "/m1"})
		must(t, site.Audit().Append(t.Context(), []*audit.Entry{&entries[len(entries)-1]}))
		if n := count(fmt.Sprintf(`SELECT count(*) FROM audit WHERE id = %d AND (get_byte(entry, 0) = ascii('{')) = %t`, len(entries), asJSON)); n != 1 {
			t.Errorf("is entry %d of the audit log stored as JSON: %t, want %t", len(entries), !asJSON, asJSON)
		}
		found, err := site.Audit().Search(t.Context(), audit.Query{Entity: patient + "/m1", Count: 10})
		slices.Reverse(found) // the newest comes first
		if diff := cmp.Diff(entries, found); err != nil || diff != "" {
			t.Errorf("%v, entries of the audit log (-want +got):\n%s", err, diff)
		}
	}
	appendEntry(true) // the earlier release reads it
	const asEarlier = `UPDATE res SET present = present & ((1::int8 << 58) - 1)`
	execute(t, pool, asEarlier)
	findTokens(t, "after writes of the earlier release", site)
	renew := func(want postgres.Renewal) {
		t.Helper()
		site.SetRenewPause(0)
		if state, err := site.Renew(t.Context(), 1, func(postgres.Reindexed) {}); err != nil || state != want {
			t.Errorf("renewed: %v, %v, want %v", state, err, want)
		}
	}
	before := count(`SELECT count(DISTINCT present) FROM res`)
	renew(postgres.Waiting)
	if n := count(`SELECT count(DISTINCT present) FROM res WHERE present < 0`); before != 1 || n != 3 {
		t.Errorf("%d, then %d different bits of common codes, want 1, then 3", before, n)
	}
	findTokens(t, "after reindexing", site)
	earlier, err := pgx.Connect(t.Context(), server.URL(pool.Config().ConnConfig.Database)+"&application_name=paddock-2")
	must(t, err)
	execute(t, pool, `UPDATE requirement SET texts_until = now()`)
	renew(postgres.Waiting) // for the server of the earlier release
	_, err = earlier.Exec(t.Context(), asEarlier+` WHERE id = 'm1'`)
	must(t, err)
	endSession(t, pool, earlier)
	renew(postgres.Current)
	if level := count(`SELECT oldest_server FROM requirement`); level != schema.Server {
		t.Errorf("servers of level %d may use the database, want %d", level, schema.Server)
	}
	for _, s := range []*postgres.Store{site, stale} {
		findTokens(t, "after the upgrade", s)
	}
	appendEntry(false)
	// An update and a deletion remove the rows that the earlier release needed, too.
	writeAll(t, stale, gendered("f2", "male"), gendered("f2", "female"), store.Op{Kind: store.Delete, Key: store.Key{Type: patient, ID: "m1"}}, gendered("m1", "male"))
	findTokens(t, "after further writes", site)
	rows := map[string]int{}
	for _, id := range []string{"f1", "f2", "m1", "o1"} {
		rows[id] = count(fmt.Sprintf(`SELECT count(*) FROM ix_code x JOIN res r USING (site, rid) WHERE r.id = '%s'`, id))
	}
	// f2 has its row of telecom still. The phone of each has a row, and the gender of o1.
	if diff := cmp.Diff(map[string]int{"f1": 3, "f2": 2, "m1": 1, "o1": 3}, rows); diff != "" {
		t.Errorf("tokens after further writes (-want +got):\n%s", diff)
	}
	if n := count(`SELECT count(*) FROM ix_code x WHERE NOT EXISTS (SELECT FROM res r WHERE r.rid = x.rid)`); n > 0 {
		t.Errorf("%d tokens of a deleted record", n)
	}
}

// TestCommonCodes shows which tokens have rows in a new database, however they are written.
func TestCommonCodes(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*testing.T, *postgres.Store, []store.Op){
		"single writes": func(t *testing.T, s *postgres.Store, ops []store.Op) { writeAll(t, s, ops...) },
		"batches": func(t *testing.T, s *postgres.Store, ops []store.Op) {
			s.BatchEveryWrite()
			writeAll(t, s, ops...)
		},
		"a load": func(t *testing.T, s *postgres.Store, ops []store.Op) { must(t, s.Load(t.Context(), ops)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := uuid.NewString()
			site := open(t, shared, key, withFacets())
			write(t, site, []store.Op{gendered("f1", "female"), gendered("f2", "female"), gendered("m1", "male"), gendered("o1", "other")})
			findTokens(t, "in a new database", site)
			var rows string
			const find = `SELECT string_agg(format('%s %s', r.id, (SELECT count(*) FROM ix_code x WHERE (x.site, x.rid) = (r.site, r.rid))), ', ' ORDER BY r.id)
				FROM res r JOIN sites s USING (site) WHERE s.key = $1`
			if err := shared.QueryRow(t.Context(), find, key).Scan(&rows); err != nil || rows != "f1 1, f2 1, m1 1, o1 2" {
				t.Errorf("tokens of records: %s, %v", rows, err)
			}
		})
	}
}
