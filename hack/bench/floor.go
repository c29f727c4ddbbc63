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
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// floorOf describes a floor handler: chi and pgx, the engine's own statements, and nothing else. It
// checks no token and parses no resource, and it responds with the files of the folder Answers. Below
// /engine it calls the engine instead of sending the statements. This shows how fast a server is that
// adds nothing to the engine.
type floorOf struct {
	URI, SiteKey string
	Records      int
	Loaded       [2]time.Time
	// Answers is a folder with the response to each search, in a file that is named by the index of the
	// search, and with the response to a read in the file "read".
	Answers string
}

// floorHandler is the handler that floorOf describes.
type floorHandler struct {
	database *database
	site     *postgres.Store
	pool     *pgxpool.Pool
	reads    [][]statement
	searches [][]statement
	answers  [][]byte
	read     []byte
	put      store.Op
	// keys and queries are the same reads and searches as calls of the engine have them.
	keys    []store.Key
	queries []store.Query
}

func serveFloor(ctx context.Context, description string) error {
	var of floorOf
	if err := json.Unmarshal([]byte(description), &of); err != nil {
		return err
	}
	h, err := newFloor(ctx, of)
	if err != nil {
		return err
	}
	router := chi.NewRouter()
	router.Get("/read/{n}", func(w http.ResponseWriter, r *http.Request) {
		h.answer(w, r, h.reads[number(r)%len(h.reads)], h.read)
	})
	router.Get("/search/{n}", func(w http.ResponseWriter, r *http.Request) {
		h.answer(w, r, h.searches[number(r)], h.answers[number(r)])
	})
	router.Get("/engine/read/{n}", func(w http.ResponseWriter, r *http.Request) {
		_, err := h.site.Get(r.Context(), h.keys[number(r)%len(h.keys)])
		respond(w, http.StatusOK, h.read, err)
	})
	router.Get("/engine/search/{n}", func(w http.ResponseWriter, r *http.Request) {
		_, err := h.site.Search(r.Context(), h.queries[number(r)])
		respond(w, http.StatusOK, h.answers[number(r)], err)
	})
	router.Post("/create", h.create)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return (&http.Server{Handler: router, ReadHeaderTimeout: time.Second}).Serve(listener)
}

func number(r *http.Request) (n int) {
	n, _ = strconv.Atoi(chi.URLParam(r, "n")) // bench sends only numbers here
	return n
}

func newFloor(ctx context.Context, of floorOf) (*floorHandler, error) {
	watch := &statements{}
	h := &floorHandler{database: &database{uri: of.URI, siteKey: of.SiteKey, records: of.Records, loaded: of.Loaded}}
	site, pool, err := h.database.open(ctx, watch)
	if err != nil {
		return nil, err
	}
	if h.reads, err = readsOf(ctx, h.database, site, watch); err != nil {
		return nil, err
	}
	for i, search := range databaseSearches(h.database) {
		sent, query, err := search.statementsOf(ctx, site, watch)
		if err != nil {
			return nil, err
		}
		answer, err := os.ReadFile(filepath.Join(of.Answers, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		h.searches, h.answers, h.queries = append(h.searches, sent), append(h.answers, answer), append(h.queries, query)
	}
	h.keys = h.database.sample()
	pool.Close()
	if h.read, err = os.ReadFile(filepath.Join(of.Answers, "read")); err != nil {
		return nil, err
	}
	if h.put, err = h.database.put(h.database.records - 1); err != nil {
		return nil, err
	}
	h.site, h.pool, err = h.database.open(ctx, nil)
	return h, err
}

// readsOf returns the statements that the engine sends to read each record of the sample by id.
func readsOf(ctx context.Context, d *database, site *postgres.Store, watch *statements) ([][]statement, error) {
	var reads [][]statement
	for _, key := range d.sample() {
		sent, err := watch.of(func() error {
			_, err := site.Get(ctx, key)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", key.Type, key.ID, err)
		}
		reads = append(reads, sent)
	}
	return reads, nil
}

func (h *floorHandler) answer(w http.ResponseWriter, r *http.Request, ask []statement, answer []byte) {
	respond(w, http.StatusOK, answer, send(r.Context(), h.pool, ask))
}

func respond(w http.ResponseWriter, status int, answer []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // it fails only if the client has closed the connection
}

// create writes the same record under a new id. It calls the engine, because recorded statements have
// the rows of the recorded id.
func (h *floorHandler) create(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	op := h.put
	op.Key.ID, op.Method = uuid.NewString(), store.MethodPost
	_, err := h.site.Write(r.Context(), []store.Op{op})
	respond(w, http.StatusCreated, h.read, err)
}
