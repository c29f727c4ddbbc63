package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// handPatient has the elements of a Patient that the table hand_patient has columns for.
type handPatient struct {
	Gender, BirthDate string
	Identifier        []struct{ Value string }
}

// createByHand stores a Patient.
func createByHand(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool) {
	text, patient, err := readPatient(r)
	if err == nil {
		_, err = pool.Exec(r.Context(), `INSERT INTO hand_patient (id, identifier, gender, birth, updated, body) VALUES ($1, $2, $3, $4::text::date, now(), $5)`,
			uuid.NewString(), patient.Identifier[0].Value, patient.Gender, patient.BirthDate, string(text))
	}
	respond(w, http.StatusCreated, text, err)
}

// updateByHand replaces a Patient and keeps the version before.
func updateByHand(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool) {
	text, patient, err := readPatient(r)
	if err == nil {
		_, err = pool.Exec(r.Context(), `WITH kept AS (INSERT INTO hand_history SELECT id, version, updated, body FROM hand_patient WHERE id = $1 FOR UPDATE)
			UPDATE hand_patient SET version = version + 1, identifier = $2, gender = $3, birth = $4::text::date, updated = now(), body = $5 WHERE id = $1`,
			chi.URLParam(r, "id"), patient.Identifier[0].Value, patient.Gender, patient.BirthDate, string(text))
	}
	respond(w, http.StatusOK, text, err)
}

// createBatchByHand stores the Patients of a batch by one statement.
func createBatchByHand(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool) {
	var bundle batch
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &bundle)
	}
	var ids, identifiers, genders, births, bodies []string
	for _, entry := range bundle.Entry {
		var patient handPatient
		if err == nil {
			err = json.Unmarshal(entry.Resource, &patient)
		}
		if err == nil {
			ids, identifiers, genders = append(ids, uuid.NewString()), append(identifiers, patient.Identifier[0].Value), append(genders, patient.Gender)
			births, bodies = append(births, patient.BirthDate), append(bodies, string(entry.Resource))
		}
	}
	if err == nil {
		_, err = pool.Exec(r.Context(), `INSERT INTO hand_patient (id, identifier, gender, birth, updated, body)
			SELECT id, identifier, gender, birth::date, now(), body FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) u(id, identifier, gender, birth, body)`,
			ids, identifiers, genders, births, bodies)
	}
	respond(w, http.StatusOK, text, err)
}

func readPatient(r *http.Request) (text []byte, patient handPatient, err error) {
	if text, err = io.ReadAll(r.Body); err == nil {
		err = json.Unmarshal(text, &patient)
	}
	return text, patient, err
}

// batch is a Bundle of writes.
type batch struct {
	ResourceType string       `json:"resourceType"`
	Type         string       `json:"type"`
	Entry        []batchEntry `json:"entry"`
}

type batchEntry struct {
	Resource json.RawMessage `json:"resource"`
	Request  batchRequest    `json:"request"`
}

type batchRequest struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

// batchOfCreates returns a Bundle that creates 20 Patients.
func batchOfCreates(n int) ([]byte, error) {
	bundle := batch{ResourceType: "Bundle", Type: "batch"}
	for i := range 20 {
		bundle.Entry = append(bundle.Entry, batchEntry{body(n*20 + i), batchRequest{http.MethodPost, "Patient"}})
	}
	return json.Marshal(bundle)
}

// createBatch creates 20 Patients by one request.
func (b *byHandBench) createBatch(ctx context.Context, n int) error {
	text, err := batchOfCreates(n)
	if err != nil {
		return err
	}
	answer, err := b.site.send(ctx, http.MethodPost, "", text, http.StatusOK)
	if created := bytes.Count(answer, []byte(`"status":"201`)); err == nil && created != 20 {
		return fmt.Errorf("the batch has created %d of 20 Patients: %s", created, answer)
	}
	return err
}

// createBatchByHand is createBatch for the hand-written handler.
func (b *byHandBench) createBatchByHand(ctx context.Context, n int) error {
	text, err := batchOfCreates(n)
	if err != nil {
		return err
	}
	return b.hand.do(ctx, http.MethodPost, "/batch", text, http.StatusOK)
}

// updateByHand updates one of the Patients that makeTables has copied from the site, with their ids.
func (b *byHandBench) updateByHand(ctx context.Context, n int) error {
	_, id, _ := record(b.database.practitioners()+n%(b.database.records-b.database.practitioners()), b.database.practitioners())
	return b.hand.do(ctx, http.MethodPut, "/update/"+id, body(n+1_000_000), http.StatusOK)
}
