package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// tellSize prints how much disk the records take, by table with its indexes.
func (b *databaseBench) tellSize(ctx context.Context) error {
	rows, err := b.pool.Query(ctx, `SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public' WHERE c.relkind = 'r' ORDER BY pg_total_relation_size(c.oid) DESC`)
	if err != nil {
		return err
	}
	defer rows.Close()
	fmt.Printf("%d records; bytes on disk per record\n\n| table | rows | indexes |\n|---|---|---|\n", b.database.records)
	var total, indexes float64
	for rows.Next() {
		var table string
		var ofTable, ofIndexes float64
		if err := rows.Scan(&table, &ofTable, &ofIndexes); err != nil {
			return err
		}
		total, indexes = total+ofTable, indexes+ofIndexes
		if each := (ofTable + ofIndexes) / float64(b.database.records); each >= 1 {
			fmt.Printf("| %s | %.0f | %.0f |\n", table, ofTable/float64(b.database.records), ofIndexes/float64(b.database.records))
		}
	}
	_, _, text := record(b.database.records-1, b.database.practitioners())
	fmt.Printf("| all | %.0f | %.0f |\n\nA Patient has %d bytes of JSON.\n\n", total/float64(b.database.records), indexes/float64(b.database.records), len(text))
	return rows.Err()
}

// cost has the bytes and syncs of the database's write-ahead log, and the writes through the API, so
// far.
type cost struct {
	walBytes, walSyncs, writes float64
}

var writesMetric = regexp.MustCompile(`(?m)^paddock_http_request_duration_seconds_count\{api="fhir",code="20[01]",method="(?:post|put|delete)"\} (\S+)$`)

func (b *databaseBench) cost(ctx context.Context, in installation) (c cost, err error) {
	text, err := fetch(ctx, in.metrics)
	if err != nil {
		return c, err
	}
	for _, found := range writesMetric.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return c, err
		}
		c.writes += n
	}
	err = b.pool.QueryRow(ctx, `SELECT wal_bytes::float8, COALESCE((to_jsonb(w) ->> 'wal_sync')::float8, 0) FROM pg_stat_wal w`).Scan(&c.walBytes, &c.walSyncs)
	return c, err
}

// processes are those whose processor time is reported. The time of all servers is added up, because
// only the server that a turn measures works during the turn.
type processes struct {
	servers  []int
	database int
}

// processorTime is the processor time of the servers, of the database with its sessions, and of this
// process, which is the load generator.
type processorTime struct{ server, database, client time.Duration }

func (t processorTime) since(before processorTime, requests int) processorTime {
	each := time.Duration(requests)
	return processorTime{(t.server - before.server) / each, (t.database - before.database) / each, (t.client - before.client) / each}
}

// userHZ is the number of clock ticks per second in /proc/pid/stat. It is the same on every
// architecture that Go runs on.
const userHZ = 100

// spent returns the processor time so far. It is zero if p is nil or if the processes cannot be read.
func (p *processes) spent() (t processorTime) {
	if p == nil {
		return t
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return t
	}
	for _, process := range all {
		stat, err := process.Stat()
		if err != nil {
			continue // the process has ended meanwhile
		}
		spent := time.Duration(stat.CPUTime() * float64(time.Second))
		switch {
		case slices.Contains(p.servers, stat.PID):
			t.server += spent
		case stat.PID == p.database:
			t.database += spent + time.Duration(stat.CUTime+stat.CSTime)*time.Second/userHZ // sessions that ended
		case stat.PPID == p.database:
			t.database += spent
		case stat.PID == os.Getpid():
			t.client += spent
		}
	}
	return t
}

// tell prints the cost of the writes since before. The cost includes the WAL of what the baseline
// wrote, but writes counts only those through the API.
func (c cost) tell(before cost) {
	writes := c.writes - before.writes
	if writes > 0 {
		fmt.Printf("%.0f writes through the API; %.0f bytes and %.2f syncs of WAL for each, including the WAL of the baseline's writes\n\n",
			writes, (c.walBytes-before.walBytes)/writes, (c.walSyncs-before.walSyncs)/writes)
	}
}
