package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// handOf describes a handler that runs the hand-written statements and responds with the files of the
// folder Answers.
type handOf struct {
	URI, Answers string
	Records      int
	Loaded       [2]time.Time
}

func serveByHand(ctx context.Context, description string) error {
	var of handOf
	if err := json.Unmarshal([]byte(description), &of); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(of.URI)
	if err != nil {
		return err
	}
	config.MaxConns = 16 // the default of the engine
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	searches := byHandSearches(&database{records: of.Records, loaded: of.Loaded})
	answers := make([][]byte, len(searches))
	for i := range searches {
		if answers[i], err = os.ReadFile(filepath.Join(of.Answers, fmt.Sprint(i))); err != nil {
			return err
		}
	}
	router := chi.NewRouter()
	router.Get("/search/{n}", func(w http.ResponseWriter, r *http.Request) {
		s := searches[number(r)]
		respond(w, answers[number(r)], send(r.Context(), pool, []statement{{s.sql, s.args}}))
	})
	router.Post("/create", func(w http.ResponseWriter, r *http.Request) { createByHand(w, r, pool) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return (&http.Server{Handler: router, ReadHeaderTimeout: time.Second}).Serve(listener)
}

// createByHand stores a Patient in the table hand_patient.
func createByHand(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool) {
	text, err := io.ReadAll(r.Body)
	var patient struct {
		Gender, BirthDate string
		Identifier        []struct{ Value string }
	}
	if err == nil {
		err = json.Unmarshal(text, &patient)
	}
	if err == nil {
		_, err = pool.Exec(r.Context(), `INSERT INTO hand_patient (id, identifier, gender, birth, updated, body) VALUES ($1, $2, $3, $4::text::date, now(), $5)`,
			uuid.NewString(), patient.Identifier[0].Value, patient.Gender, patient.BirthDate, string(text))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(text) // it fails only if the client has closed the connection
}
