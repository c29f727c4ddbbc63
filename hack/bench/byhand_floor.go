package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-chi/chi/v5"
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
		respond(w, http.StatusOK, answers[number(r)], send(r.Context(), pool, []statement{{s.sql, s.args}}))
	})
	router.Post("/create", func(w http.ResponseWriter, r *http.Request) { createByHand(w, r, pool) })
	router.Put("/update/{id}", func(w http.ResponseWriter, r *http.Request) { updateByHand(w, r, pool) })
	router.Post("/batch", func(w http.ResponseWriter, r *http.Request) { createBatchByHand(w, r, pool) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return (&http.Server{Handler: router, ReadHeaderTimeout: time.Second}).Serve(listener)
}
