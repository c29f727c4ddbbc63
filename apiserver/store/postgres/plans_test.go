package postgres_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
)

// recordsVariable sets the number of records.
const recordsVariable = "PADDOCK_PLAN_RECORDS"

// clinic makes patients of typical size: 950 bytes and 19 index rows.
type clinic struct{ *rand.Rand }

var (
	families = 2000
	givens   = 500
	cities   = 300
	start    = time.Date(1940, 1, 1, 0, 0, 0, 0, time.UTC)
)

func (c clinic) patient(n int) store.Op {
	gender := []string{"female", "male"}[c.IntN(2)]
	born := start.AddDate(0, 0, c.IntN(80*365))
	family, given := word("fam", c.IntN(families)), word("giv", c.IntN(givens))
	text := func(values ...string) []store.Text {
		var all []store.Text
		for _, v := range values {
			all = append(all, store.Text{Folded: v, Original: strings.ToUpper(v[:1]) + v[1:]})
		}
		return all
	}
	tokens := map[string][]store.Token{
		"identifier": {{System: "https://clinic.example/mrn", Code: strconv.Itoa(n)}},
		"gender":     {{System: "http://hl7.org/fhir/administrative-gender", Code: gender}},
		"active":     {{Code: "true"}},
		"telecom":    {{System: "phone", Code: fmt.Sprintf("+61%09d", c.IntN(1e9))}},
	}
	if n%1000 == 0 {
		tokens["_tag"] = []store.Token{{System: "https://clinic.example/tags", Code: "rare"}}
	}
	profile := profiles + "common|1.0"
	if n%1000 == 1 {
		profile = profiles + "rare|1.2.3"
	}
	vet := strconv.Itoa(n % 50)
	if n%1000 == 2 {
		vet = "rare"
	}
	body, err := json.Marshal(map[string]any{
		"Tokens": tokens,
		"Texts": map[string][]store.Text{
			"family": text(family), "given": text(given), "name": text(family, given),
			"_profile":     {{Folded: profile, Original: profile}},
			"address-city": text(word("city", c.IntN(cities))), "address": text(word("city", c.IntN(cities)), "australia"),
		},
		"Refs": map[string][]store.Reference{
			"organization": {{Type: "Organization", ID: strconv.Itoa(c.IntN(50))}}, "general-practitioner": {{Type: "Practitioner", ID: vet}},
		},
		"Periods":   map[string][]store.Period{"birthdate": {{From: born.UnixMicro(), Until: born.AddDate(0, 0, 1).UnixMicro()}}},
		"Narrative": "A patient of the clinic, seen for the " + strconv.Itoa(c.IntN(100)) + "th time; " + uuid.NewString(),
	})
	if err != nil {
		panic(err)
	}
	return store.Op{Kind: store.Put, Method: store.MethodPost, Key: store.Key{Type: patient, ID: fmt.Sprintf("p-%08d", n)}, Body: store.Body{JSON: body}}
}

// related makes a person who is related to a patient.
func related(n int) store.Op {
	body := fmt.Sprintf(`{"Refs":{"patient":[{"Type":"Patient","ID":"p-%08d"}]}}`, n)
	return store.Op{Kind: store.Put, Method: store.MethodPost, Key: store.Key{Type: "RelatedPerson", ID: strconv.Itoa(n)}, Body: store.Body{JSON: []byte(body)}}
}

const (
	patient  = "Patient"
	profiles = "https://clinic.example/profiles/"
)

func word(kind string, n int) string { return fmt.Sprintf("%c%c%s%d", 'a'+n%26, 'a'+n/26%26, kind, n) }

// populate makes a site with a number of patients, in the state in which autovacuum would leave it.
func populate(t testing.TB, n int) (key string) {
	t.Helper()
	key = uuid.NewString()
	options := planOptions
	// As if some time had passed between writes.
	at := time.Now().Add(-time.Duration(n) * time.Second)
	options.Now = func() time.Time { at = at.Add(time.Second); return at }
	site := open(t, shared, key, options)
	c := clinic{rand.New(rand.NewPCG(4, 2))}
	for made := 0; made < n; {
		ops := make([]store.Op, 0, 2000)
		for range min(cap(ops), n-made) {
			ops = append(ops, c.patient(made))
			if made%5 == 2 {
				ops = append(ops, related(made))
			}
			made++
		}
		if err := site.Load(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	var few []store.Op
	for i := range 50 {
		few = append(few, store.Op{Kind: store.Put, Key: store.Key{Type: "Organization", ID: strconv.Itoa(i)}, Body: store.Body{JSON: []byte("{}")}})
	}
	few = append(few, store.Op{Kind: store.Put, Key: store.Key{Type: "Practitioner", ID: "rare"}, Body: store.Body{JSON: []byte(`{"Texts":{"family":[{"Folded":"rare","Original":"Rare"}]}}`)}})
	for _, op := range few {
		if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	// A transaction elsewhere keeps vacuum from marking what was written meanwhile; single
	// pages that are in use it leaves out.
	deadline := time.Now().Add(time.Minute)
	for marked := false; !marked; {
		if _, err := conn.Exec(t.Context(), "VACUUM (ANALYZE) res, ix_code, ix_ref, ix_text, ix_date"); err != nil {
			t.Fatal(err)
		}
		const visible = `SELECT bool_and(relallvisible >= relpages * 0.97 - 5) FROM pg_class
			WHERE oid = ANY (ARRAY['res', 'ix_code', 'ix_ref', 'ix_text', 'ix_date']::regclass[])`
		if err := conn.QueryRow(t.Context(), visible).Scan(&marked); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("vacuum does not get through")
		}
	}
	return key
}

var planOptions = postgres.Options{
	Extractor:    storetest.Extractor{Facets: []string{"gender", "active"}},
	QueryTimeout: time.Minute,
}

// plans collects the plans that the server reports for its statements.
type plans struct {
	mu      sync.Mutex
	buffers int
	texts   []string
}

func (p *plans) take(_ *pgconn.PgConn, notice *pgconn.Notice) {
	_, text, ok := strings.Cut(notice.Message, "plan:\n")
	if !ok {
		return
	}
	var plan struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers += plan.Plan.Hit + plan.Plan.Read
	p.texts = append(p.texts, text)
}

func (p *plans) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers, p.texts = 0, nil
}

// explaining opens a pool whose statements report their plans.
func explaining(t *testing.T) (*pgxpool.Pool, *plans) {
	t.Helper()
	config, err := postgres.Config(unhurried(server.URL(database)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_buffers": "on", "auto_explain.log_timing": "off", "auto_explain.log_format": "json", "auto_explain.log_level": "notice", "client_min_messages": "notice",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	seen := &plans{}
	config.ConnConfig.OnNotice = seen.take
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, seen
}

// TestPlans limits how many pages of tables and indexes reads and searches may touch.
func TestPlans(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(recordsVariable), "50000"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pool, seen := explaining(t)
	key := populate(t, n)
	t.Logf("made %d records in %s", n, time.Since(began))
	site := open(t, pool, key, planOptions)
	for name, known := range map[string]float64{"entries of birthdate": site.EntryCount(patient, "birthdate"), "records": site.RecordCount(patient)} {
		if known < 0.8*float64(n) || known > 1.2*float64(n) {
			t.Errorf("%.0f %s are known, there are %d", known, name, n)
		}
	}
	newest := []store.Sort{{Field: store.SortCreated, Descending: true}}
	born := func(from time.Time, years, months int) store.Condition {
		return store.PeriodIs{Param: "birthdate", From: store.Bounds{Least: from.UnixMicro(), Most: store.TheEnd}, Until: store.Bounds{Least: store.TheBeginning, Most: from.AddDate(years, months, 0).UnixMicro()}}
	}
	year := func(y int) store.Condition { return born(time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), 1, 0) }
	// From a day of February of one year to a day of another year: what is as long as a year
	// or a month may begin before.
	twoEnds := func(from, until int) store.Condition {
		start, end := time.Date(from, 2, 10, 0, 0, 0, 0, time.UTC), time.Date(until, 2, 20, 0, 0, 0, 0, time.UTC)
		at := func(t time.Time) store.PeriodArea {
			return store.PeriodArea{From: store.Bounds{Least: t.UnixMicro(), Most: t.UnixMicro()}, Until: store.Bounds{Least: start.UnixMicro() + 1, Most: store.TheEnd}}
		}
		return store.SinglePeriodIn{Param: "birthdate", Areas: []store.PeriodArea{
			at(time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)), at(time.Date(from, 2, 1, 0, 0, 0, 0, time.UTC)),
			{From: store.Bounds{Least: start.UnixMicro(), Most: end.UnixMicro() - 1}, Until: store.Unbounded},
		}}
	}
	// Each record is written a second after the one before it, the last just now.
	updated := func(from, until int) store.Condition {
		at := func(record int) time.Time { return began.Add(time.Duration(record-n) * time.Second) }
		return store.UpdatedIn{From: at(from), Until: at(until)}
	}
	token := func(param, code string) store.Condition { return store.TokenIs{Param: param, Code: &code} }
	identifier := func(code string) store.Condition {
		system := "https://clinic.example/mrn"
		return store.TokenIs{Param: "identifier", System: &system, Code: &code}
	}
	profile := func(url string) store.Condition { // in any version
		return store.Any{
			store.TextIs{Param: "_profile", Match: store.Exactly, Text: url}, store.TextIs{Param: "_profile", Match: store.StartsExactly, Text: url + "|"},
		}
	}
	// in is a search in the compartment of a practitioner, of all types or of one.
	in := func(id string, types ...string) store.Query {
		to := store.Reference{Type: "Practitioner", ID: id}
		return store.Query{Types: types, Sort: newest, Count: 20, Total: store.TotalNone, MaxIncluded: 1000, ByType: map[string]store.Condition{
			patient:            store.RefersTo{Param: "general-practitioner", To: to},
			"Organization":     store.Any{store.RefersTo{Param: "partof", To: to}, store.RefersTo{Param: "contact", To: to}},
			"Practitioner":     store.IDIn{id},
			"PractitionerRole": store.RefersTo{Param: "practitioner", To: to},
		}}
	}
	also := func(q store.Query, condition store.Condition) store.Query { q.Where = condition; return q }
	allOf := []string{patient, "Organization", "Practitioner", "PractitionerRole"}
	// either is a compartment that two parameters lead to.
	either := func(id string) store.Condition {
		to := store.Reference{Type: "Practitioner", ID: id}
		return store.Any{store.RefersTo{Param: "general-practitioner", To: to}, store.RefersTo{Param: "organization", To: to}}
	}
	deep := func(query store.Query) store.Query {
		query.Count, query.Total = 1000, store.TotalNone
		for range 5 {
			page, err := site.Search(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			query.After = page.Next
		}
		query.Count = 20
		return query
	}
	page := store.Query{Types: []string{patient}, Sort: newest, Count: 20, Total: store.TotalNone, MaxIncluded: 1000}
	with := func(condition store.Condition) store.Query { q := page; q.Where = condition; return q }
	sorted := func(q store.Query, by ...store.Sort) store.Query { q.Sort = by; return q }
	byFamily, byBirth := store.Sort{Field: store.SortText, Param: "family"}, store.Sort{Field: store.SortPeriod, Param: "birthdate"}
	lastBorn := store.Sort{Field: store.SortPeriod, Param: "birthdate", Descending: true}
	including := func(q store.Query, i store.Include) store.Query { q.Includes = []store.Include{i}; return q }
	total := func(q store.Query) store.Query { q.Total = store.TotalWhenFree; return q }
	chained := with(store.Chain{Param: "patient", Type: patient, Where: store.Chain{
		Param: "general-practitioner", Type: "Practitioner", Where: store.TextIs{Param: "family", Text: "rare"},
	}})
	chained.Types = []string{"RelatedPerson"}
	ofBirth := with(store.Chain{Param: "patient", Type: patient, Where: born(time.Date(1980, 3, 1, 0, 0, 0, 0, time.UTC), 0, 3)})
	ofBirth.Types = chained.Types
	referring := store.Include{Type: "RelatedPerson", Param: "patient", Reverse: true}
	for _, test := range []struct {
		name    string
		query   store.Query
		records int
		most    int
	}{
		{"identifier", with(identifier("777")), 1, 15},
		{"identifier of nobody", with(identifier("nobody")), 0, 15},
		{"id", with(store.IDIn{"p-00000777"}), 1, 15},
		{"newest", page, 20, 150},
		{"newest, counted", total(page), 20, 150},
		{"deep", deep(page), 20, 150},
		{"family prefix", with(store.TextIs{Param: "family", Text: "aafam"}), 20, 150},
		// The rows of 26 times as many records as the page has are read.
		{"short family prefix", with(store.TextIs{Param: "family", Text: "a"}), 20, 250},
		{"family prefix, deep", deep(with(store.TextIs{Param: "family", Text: "a"})), 20, 250},
		// Both genders have the same bit in one of 61 sites. Then twice as many rows are read.
		{"birthdate and gender", with(store.All{year(1980), token("gender", "female")}), 20, 250},
		{"birthdate by two ends and gender", with(store.All{twoEnds(1980, 1981), token("gender", "female")}), 20, 250},
		{"wide birthdate by two ends and gender", with(store.All{twoEnds(1980, 1985), token("gender", "female")}), 20, 250},
		{"the same, sorted by birthdate", sorted(with(store.All{twoEnds(1980, 1985), token("gender", "female")}), byBirth), 20, 150},
		{"the same, last first", sorted(with(store.All{twoEnds(1980, 1985), token("gender", "female")}), lastBorn), 20, 150},
		{"the same, deep", deep(sorted(with(store.All{twoEnds(1940, 2000), token("gender", "female")}), lastBorn)), 20, 150},
		{"updated between", with(updated(n/2, n/2+30)), 20, 150},
		{"updated between, wide", with(updated(n/4, n/2)), 20, 350},
		{"updated between, wide, sorted", sorted(with(updated(n/4, n/2)), store.Sort{Field: store.SortUpdated}), 20, 150},
		{"gender", with(token("gender", "female")), 20, 150},
		{"rare tag", with(token("_tag", "rare")), 20, 150},
		{"rare profile", with(profile(profiles + "rare")), 20, 150},
		{"profile of all", with(profile(profiles + "common")), 20, 150},
		{"profile of all, by version", with(store.TextIs{Param: "_profile", Match: store.Exactly, Text: profiles + "common|1.0"}), 20, 150},
		{"profile of nobody", with(profile(profiles + "none")), 0, 15},
		{"rare tag and gender", with(store.All{token("_tag", "rare"), token("gender", "female")}), 20, 150},
		{"organization", with(store.RefersTo{Param: "organization", To: store.Reference{Type: "Organization", ID: "7"}}), 20, 150},
		{"organization and family", with(store.All{store.RefersTo{Param: "organization", To: store.Reference{Type: "Organization", ID: "7"}}, store.TextIs{Param: "family", Text: "a"}}), 20, 150},
		{"compartment", in("rare", patient), 20, 150},
		{"compartment with many", in("7", patient), 20, 150},
		{"compartment of nobody", in("nobody", patient), 0, 15},
		{"compartment and family", also(in("7", patient), store.TextIs{Param: "family", Text: "a"}), 20, 150},
		{"compartment, counted", total(in("7", patient)), 20, 150},
		{"compartment, all types", in("rare", allOf...), 20, 150},
		{"compartment with many, all types", in("7", allOf...), 20, 150},
		{"compartment of nobody, all types", in("nobody", allOf...), 0, 40},
		{"compartment by two parameters", with(either("rare")), 20, 150},
		{"compartment by two parameters, many", with(either("7")), 20, 150},
		{"compartment by two, of nobody", with(either("nobody")), 0, 15},
		{"sorted by family", sorted(page, byFamily), 20, 150},
		{"sorted by birthdate, last first", sorted(page, lastBorn), 20, 150},
		{"sorted by birthdate, deep", deep(sorted(page, lastBorn)), 20, 150},
		{"sorted by family and birthdate", sorted(page, byFamily, byBirth), 20, 150},
		// A scan in sort order finds them. They are a thousandth of its entries.
		{"few sorted by family", sorted(with(token("_tag", "rare")), byFamily), 20, 500},
		{"newest, including organizations", including(page, store.Include{Type: patient, Param: "organization"}), 20, 150},
		{"newest, including all", including(page, store.Include{}), 20, 150},
		{"newest, including those that refer", including(page, referring), 20, 250},
		{"newest, including all that refer", including(page, store.Include{Reverse: true}), 20, 250},
		// The patients of a practitioner are in between: a thousandth of all, each with a related person.
		{"chain of two", chained, min(20, n/1000), 500},
		// The row of each patient who was born in these three months is read, one in 320.
		{"chain by birthdate", ofBirth, 20, n / 50},
		{"not female", with(store.Not{Condition: token("gender", "female")}), 20, 150},
	} {
		switch {
		case n <= 200_000:
		case test.name == "organization and family", test.name == "compartment and family":
			// Both lists have tens of thousands of rids, so no plan is by list. Candidates of one
			// are tested one by one.
			test.most = 3000
		case test.name == "rare profile":
			// A thousandth of all records have it, which is few enough for a branch by list. One row
			// of each is fetched to compare originals.
			test.most = n / 800
		case test.name == "sorted by family and birthdate":
			// All records of the page's last family are sorted.
			test.most = n / 400
		}
		seen.reset()
		found, err := site.Search(t.Context(), test.query)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(found.Records) != test.records {
			t.Errorf("%s: %d records, want %d", test.name, len(found.Records), test.records)
		}
		t.Logf("%-28s %4d buffers (at most %d)", test.name, seen.buffers, test.most)
		if seen.buffers > test.most {
			t.Errorf("%s: %d buffers, at most %d wanted\n%s", test.name, seen.buffers, test.most, strings.Join(seen.texts, "\n"))
		}
	}
	seen.reset()
	if _, err := site.Get(t.Context(), store.Key{Type: patient, ID: "p-00000777"}); err != nil {
		t.Fatal(err)
	}
	t.Logf("read by id %d buffers", seen.buffers)
	if seen.buffers > 6 {
		t.Errorf("read by id: %d buffers, at most 6 wanted", seen.buffers)
	}
}
