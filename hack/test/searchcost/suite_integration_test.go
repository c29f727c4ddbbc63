package searchcost

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// practice is a database with the records of a practice.
type practice struct {
	// site reports the plans of its statements to pages, which takes time. plain does not.
	site, plain *postgres.Store
	pages       *pages
	generator   *Generator
	url         string
}

// pages counts the pages that statements touch, as auto_explain reports them.
type pages struct {
	mu    sync.Mutex
	count int
	plans []string
}

func (p *pages) take(_ *pgconn.PgConn, notice *pgconn.Notice) {
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
	p.count += plan.Plan.Hit + plan.Plan.Read
	p.plans = append(p.plans, text)
}

func (p *pages) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.plans = 0, nil
}

// newPractice fills a database and opens it with statements that report their plans.
func newPractice(t *testing.T) *practice {
	t.Helper()
	ctx := t.Context()
	dir, err := os.MkdirTemp("", "paddock-cost") // a folder within t.TempDir is root's alone, and root cannot run the server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Settings: map[string]string{"shared_buffers": "512MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	p := &practice{url: server.URL("postgres"), pages: &pages{}}
	conn := p.connect(t)
	if _, err := schema.Migrate(ctx, conn); err != nil {
		t.Fatal(err)
	}
	key := uuid.NewString()
	p.fill(t, key)
	p.execute(t, "VACUUM (ANALYZE)")
	p.site, p.plain = p.open(t, key, nil, p.pages), p.open(t, key, nil, nil)
	return p
}

func (p *practice) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func (p *practice) execute(t *testing.T, sql string) {
	t.Helper()
	if _, err := p.connect(t).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// open opens the site. If seen is not nil, its statements report their plans there.
func (p *practice) open(t *testing.T, key string, now func() time.Time, seen *pages) *postgres.Store {
	t.Helper()
	config, err := postgres.Config(p.url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["statement_timeout"] = "10min"
	if seen != nil {
		for name, value := range map[string]string{
			"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
			"auto_explain.log_buffers": "on", "auto_explain.log_timing": "off", "auto_explain.log_format": "json", "auto_explain.log_level": "notice", "client_min_messages": "notice",
		} {
			config.ConnConfig.RuntimeParams[name] = value
		}
		config.ConnConfig.OnNotice = seen.take
		config.MaxConns = 1
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	site, err := postgres.Open(t.Context(), pool, key, postgres.Options{Extractor: extraction.Extractor{}, QueryTimeout: 10 * time.Minute, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// fill writes the records, one each second up to now, and keeps the values of a sample.
func (p *practice) fill(t *testing.T, key string) {
	t.Helper()
	ended := time.Now().UTC()
	began := ended.Add(-2 * time.Duration(*patients) * time.Second)
	p.generator = NewGenerator(*seed, began, ended)
	site := p.open(t, key, func() time.Time { began = began.Add(time.Second); return began }, nil)
	err := Records(*seed, *patients, func(ops []store.Op) error {
		p.generator.Sample(ops)
		return site.Load(t.Context(), ops)
	})
	if err != nil {
		t.Fatal(err)
	}
}
