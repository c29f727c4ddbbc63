package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// byHandSearch is the path of a search in the API, and a statement on handTables that is written by
// hand for it.
type byHandSearch struct {
	name, path, sql string
	args            []any
}

const (
	newestFirst      = "newest first"
	lastUpdatedFirst = "last updated first"
	pollByTime       = "poll by _lastUpdated"
	aMonthAndGender  = "month and gender"
	monthByTwoEnds   = "month by two ends and gender"
)

func byHandSearches(d *database) []byHandSearch {
	const page = "/patient?_total=none&_count=20"
	const month = `birth >= '2019-03-01' AND birth <= '2019-03-31' AND gender = 'other'`
	const newestOfMonth = `SELECT body FROM hand_patient WHERE birth_month = 2019 * 12 + 3 AND gender = 'other' ORDER BY n DESC LIMIT 20`
	identifier := url.QueryEscape(fmt.Sprintf("https://clinic.example.org/patients|p-%07d", d.records/2))
	since := d.loaded[1]
	return []byHandSearch{
		{newestFirst, page, `SELECT body FROM hand_patient ORDER BY n DESC LIMIT 20`, nil},
		{lastUpdatedFirst, page + "&_sort=-_lastUpdated", `SELECT body FROM hand_patient ORDER BY updated DESC, n DESC LIMIT 20`, nil},
		{pollByTime, page + "&_lastUpdated=ge" + since.UTC().Format("2006-01-02T15:04:05.000Z"), `SELECT body FROM hand_patient WHERE updated >= $1 ORDER BY n DESC LIMIT 20`, []any{since}},
		{aMonthAndGender, page + "&" + aMonth, newestOfMonth, nil},
		{monthByTwoEnds, page + "&" + twoEnds, newestOfMonth, nil},
		{"month by two ends, sorted by birthdate", page + "&_sort=birthdate&" + twoEnds, `SELECT body FROM hand_patient WHERE ` + month + ` ORDER BY birth, n LIMIT 20`, nil},
		{
			"_has, one record", "/practitioner?_total=none&_has:Patient:general-practitioner:identifier=" + identifier,
			`SELECT v.body FROM hand_patient p JOIN hand_vet v ON v.id = p.vet WHERE p.identifier = $1`,
			[]any{fmt.Sprintf("p-%07d", d.records/2)},
		},
		{
			"chain of two levels", "/related-person?_total=none&_count=20&patient.general-practitioner:Practitioner.family:exact=Okafor-16",
			`SELECT r.body FROM hand_vet v JOIN hand_patient p ON p.vet = v.id JOIN hand_related r ON r.patient = p.id WHERE v.family = 'Okafor-16' ORDER BY r.n DESC LIMIT 20`, nil,
		},
	}
}

// related is how many Patients there are for each one that has a RelatedPerson.
const related = 50

func relatedPerson(patient string) []byte {
	return fmt.Appendf(nil, `{"resourceType":"RelatedPerson","active":true,"patient":{"reference":"Patient/%s"},"name":[{"family":"Owner"}]}`, patient)
}

// addRelated creates the RelatedPersons.
func (b *byHandBench) addRelated(ctx context.Context) error {
	for n := b.database.practitioners(); n < b.database.records; n += related {
		_, id, _ := record(n, b.database.practitioners())
		if err := b.site.do(ctx, http.MethodPost, "/related-person", relatedPerson(id), http.StatusCreated); err != nil {
			return err
		}
	}
	return nil
}

// handTables have only what the hand-written requests need, and no other search parameters.
const handTables = `
	CREATE TABLE hand_patient (n int8 GENERATED ALWAYS AS IDENTITY, id text, version int NOT NULL DEFAULT 1, identifier text, vet text, gender text, birth date,
		birth_month int GENERATED ALWAYS AS (extract(year FROM birth)::int * 12 + extract(month FROM birth)::int) STORED, updated timestamptz, body text);
	CREATE TABLE hand_history (id text, version int, updated timestamptz, body text, PRIMARY KEY (id, version));
	CREATE TABLE hand_vet (id text, family text, body text);
	CREATE TABLE hand_related (n int8 GENERATED ALWAYS AS IDENTITY, patient text, body text)`

const handIndexes = `
	CREATE UNIQUE INDEX ON hand_patient (n);
	CREATE UNIQUE INDEX ON hand_patient (id);
	CREATE INDEX ON hand_patient (updated, n);
	CREATE INDEX ON hand_patient (gender, birth, n);
	CREATE INDEX ON hand_patient (gender, birth_month, n);
	CREATE INDEX ON hand_patient (identifier);
	CREATE INDEX ON hand_patient (vet, id);
	CREATE UNIQUE INDEX ON hand_vet (id);
	CREATE INDEX ON hand_vet (family);
	CREATE INDEX ON hand_related (patient)`

// makeTables creates the tables, fills them with the records of the site, and then creates the indexes.
func (d *database) makeTables(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, handTables); err != nil {
		return err
	}
	var vets, patients, persons [][]any
	from, step := d.loaded[1].Add(-time.Hour), time.Hour/time.Duration(d.records)
	for n := range d.records {
		typeName, id, text := d.text(n)
		if typeName == "Practitioner" {
			family, _, _ := strings.Cut(strings.SplitN(string(text), `"family":"`, 2)[1], `"`)
			vets = append(vets, []any{id, family, string(text)})
			continue
		}
		var r struct {
			Gender, BirthDate string
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		birth, err := time.Parse(time.DateOnly, r.BirthDate)
		if err != nil {
			return err
		}
		patients = append(patients, []any{id, fmt.Sprintf("p-%07d", n), fmt.Sprintf("vet-%d", n%d.practitioners()), r.Gender, birth, from.Add(step * time.Duration(n)).Add(time.Hour / 2), string(text)})
		if (n-d.practitioners())%related == 0 {
			persons = append(persons, []any{id, string(relatedPerson(id))})
		}
	}
	for _, copied := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"hand_vet", []string{"id", "family", "body"}, vets},
		{"hand_patient", []string{"id", "identifier", "vet", "gender", "birth", "updated", "body"}, patients},
		{"hand_related", []string{"patient", "body"}, persons},
	} {
		if _, err := pool.CopyFrom(ctx, pgx.Identifier{copied.table}, copied.columns, pgx.CopyFromRows(copied.rows)); err != nil {
			return err
		}
	}
	_, err := pool.Exec(ctx, handIndexes)
	return err
}
