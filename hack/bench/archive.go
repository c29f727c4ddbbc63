package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	archiveCopy = "copy"
	// archiveTurns is how often export and COPY alternate, because each takes only seconds.
	archiveTurns = 5
	// rawSite is the number of the site whose rows the baseline of imports stores.
	rawSite = 1_000_000
)

// exportedTables are the tables that an export reads, importedTables those that an import writes.
var (
	exportedTables = []string{"res", "hist", "claim"}
	importedTables = []string{"res", "hist", "claim", "ix_code", "ix_ref", "ix_text", "ix_date", "ix_pos"}
)

// archiveManifest is a second Site in the same database. %[1]s are the limits, and %[2]s its name
// and namespace.
const archiveManifest = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%[2]s"}},
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"editor","namespace":"%[2]s"}},
{"apiVersion":"paddock.health/v1alpha1","kind":"Site","metadata":{"name":"%[2]s","namespace":"%[2]s"},
"spec":{%[1]s,"storage":{"type":"Postgres","postgres":{"external":{"secretRef":{"name":"demo-db"}}}}}}]}`

// benchArchive measures the export of a site in the native format and its import into another one,
// through the API server, against COPY of the same rows.
func benchArchive(ctx context.Context, o options, in installation) error {
	dir, d, end, err := newArchive(ctx, o, in)
	if err != nil {
		return err
	}
	defer end()
	if err := addArchiveSite(ctx, in, d, dir, archiveCopy); err != nil {
		return err
	}
	source, target, err := archiveClients(ctx, in, archiveCopy)
	if err != nil {
		return err
	}
	quiet := &bulk.Progress{Out: io.Discard, Now: time.Now}
	folder := filepath.Join(dir, "first")

	client, err := newPeak()
	if err != nil {
		return err
	}
	var manifest bulk.NativeManifest
	var exported, copiedOut []time.Duration
	for turn := range archiveTurns {
		into := folder
		if turn > 0 {
			into = fmt.Sprint(folder, turn)
		}
		own, err := took(func() (err error) {
			manifest, err = bulk.ExportNative(ctx, source, databaseSite, into, quiet)
			return err
		})
		if err != nil {
			return err
		}
		copied, err := took(func() error { return d.copyOut(ctx, exportedTables, dir, false) })
		if err != nil {
			return err
		}
		exported, copiedOut = append(exported, own), append(copiedOut, copied)
	}
	clientPeak, err := client.read()
	if err != nil {
		return err
	}
	imported, err := took(func() error {
		counts, err := bulk.Import(ctx, target, archiveCopy, folder, false, quiet)
		if err == nil && counts["created"] != d.records {
			err = fmt.Errorf("imported %v, want %d created", counts, d.records)
		}
		return err
	})
	if err != nil {
		return err
	}
	second, err := bulk.ExportNative(ctx, target, archiveCopy, filepath.Join(dir, "second"), quiet)
	if err != nil {
		return err
	}
	if second.SHA256 != manifest.SHA256 {
		return fmt.Errorf("the copy has the digest %s, want %s", second.SHA256, manifest.SHA256)
	}
	if err := d.copyOut(ctx, importedTables, dir, true); err != nil {
		return err
	}
	copiedIn, err := took(func() error { return d.copyIn(ctx, dir) })
	if err != nil {
		return err
	}
	rate := func(in time.Duration) float64 { return float64(d.records) / in.Seconds() }
	fmt.Printf("| %d records | seconds | per second | COPY of the same rows: seconds | per second | ratio |\n|---|---|---|---|---|---|\n", d.records)
	row := func(name string, own, copied time.Duration) {
		fmt.Printf("| %s | %.2f | %.0f | %.2f | %.0f | %.2f |\n", name, own.Seconds(), rate(own), copied.Seconds(), rate(copied), copied.Seconds()/own.Seconds())
	}
	var ratios []float64
	for i := range exported {
		row("export", exported[i], copiedOut[i])
		ratios = append(ratios, copiedOut[i].Seconds()/exported[i].Seconds())
	}
	row("import", imported, copiedIn)
	slices.Sort(ratios)
	fmt.Printf("\nThe median of the ratios of the exports is %.2f.\n", ratios[len(ratios)/2])
	fmt.Printf("\nThe digests are equal: %s. The client of the export had at most %d MiB of resident memory.\n", manifest.SHA256, clientPeak>>20)
	return tellPeak(in)
}

// newArchive returns a new folder and a new database, in which databaseSite has its records. end stops
// the database server and removes the folder.
func newArchive(ctx context.Context, o options, in installation) (dir string, d *database, end func(), err error) {
	if dir, err = os.MkdirTemp("", "paddock-bench-archive"); err != nil {
		return "", nil, nil, err
	}
	if d, err = newDatabase(ctx, o, in, filepath.Join(dir, "postgres")); err != nil {
		return "", nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, d, func() { _ = d.server.Stop(); _ = os.RemoveAll(dir) }, nil
}

// archiveClients returns clients of databaseSite and of a second site, once the API server accepts
// exports by both.
func archiveClients(ctx context.Context, in installation, second string) (source, target *siteapi.Client, err error) {
	if source, err = archiveClient(ctx, in, databaseSite); err == nil {
		target, err = archiveClient(ctx, in, second)
	}
	return source, target, err
}

// tellPeak prints the peak resident memory of the API server.
func tellPeak(in installation) error {
	process, err := procfs.NewProc(in.paddock.APIServers[0].Pid())
	if err != nil {
		return err
	}
	status, err := process.NewStatus()
	if err != nil {
		return err
	}
	fmt.Printf("\nThe API server had at most %d MiB of resident memory.\n", status.VmHWM>>20)
	return nil
}

// peak measures the peak resident memory of this process.
type peak struct{ process procfs.Proc }

// newPeak begins a measurement. Memory that was freed before does not count.
func newPeak() (peak, error) {
	debug.FreeOSMemory()
	process, err := procfs.Self()
	if err == nil {
		err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets VmHWM, see proc(5)
	}
	return peak{process}, err
}

func (p peak) read() (uint64, error) {
	status, err := p.process.NewStatus()
	return status.VmHWM, err
}

func took(work func() error) (time.Duration, error) {
	began := time.Now()
	err := work()
	return time.Since(began), err
}

// addArchiveSite makes a second Site, gives the ServiceAccounts of databaseSite and of the new Site
// the rights of administrators, and waits until the new Site is Ready.
func addArchiveSite(ctx context.Context, in installation, d *database, dir, name string) error {
	file := filepath.Join(dir, "site.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, archiveManifest, unlimited, name), 0o600); err != nil {
		return err
	}
	if _, err := in.paddock.Kubectl(ctx, "apply", "-f", file); err != nil {
		return err
	}
	uri, err := d.server.CreateDatabase(ctx, "demo", "demo")
	if err != nil {
		return err
	}
	if err := in.paddock.SetSecret(ctx, name, "demo-db", "paddock.health/dsn", map[string]string{"uri": uri}); err != nil {
		return err
	}
	for _, site := range []string{databaseSite, name} {
		if _, err := in.paddock.Kubectl(ctx, "create", "rolebinding", "administrator", "-n", site, "--clusterrole=paddock-admin", "--serviceaccount="+site+":editor"); err != nil {
			return err
		}
	}
	_, err = in.paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", name, "site/"+name)
	return err
}

// archiveClient returns a client of a Site, once the API server accepts an export by it. It tries for
// up to a minute.
func archiveClient(ctx context.Context, in installation, site string) (*siteapi.Client, error) {
	token, err := in.paddock.Token(ctx, site, "editor", "paddock.health/"+site+"/"+site, time.Hour)
	if err != nil {
		return nil, err
	}
	client, err := siteapi.New(siteapi.Config{
		BaseURL: in.paddock.PublicURL() + "/site/" + site, Token: func(context.Context) (string, error) { return token, nil },
	})
	for began := time.Now(); err == nil; {
		if _, err := client.ExportNative(ctx, "", "", nil); err == nil {
			return client, nil
		} else if time.Since(began) > time.Minute {
			return nil, err
		}
		time.Sleep(time.Second)
	}
	return nil, err
}

// copyOut copies the rows of databaseSite out of tables, with rawSite as the number of the site. It
// writes them to files in dir if keep is true, and discards them otherwise.
func (d *database) copyOut(ctx context.Context, tables []string, dir string, keep bool) error {
	return d.eachTable(ctx, tables, func(conn *pgx.Conn, table, columns string) error {
		out := io.Discard
		if keep {
			file, err := os.Create(filepath.Join(dir, table))
			if err != nil {
				return err
			}
			defer file.Close()
			out = file
		}
		rows := strings.Replace(columns, "site", fmt.Sprintf("%d AS site", rawSite), 1)
		_, err := conn.PgConn().CopyTo(ctx, out, fmt.Sprintf("COPY (SELECT %s FROM %s WHERE site = (SELECT site FROM sites WHERE key = '%s')) TO STDOUT (FORMAT binary)", rows, table, d.siteKey))
		return err
	})
}

// copyIn stores the rows that copyOut kept.
func (d *database) copyIn(ctx context.Context, dir string) error {
	return d.eachTable(ctx, importedTables, func(conn *pgx.Conn, table, columns string) error {
		file, err := os.Open(filepath.Join(dir, table))
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = conn.PgConn().CopyFrom(ctx, file, fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", table, columns))
		return err
	})
}

// eachTable calls work with each table and its columns, of which the first is site.
func (d *database) eachTable(ctx context.Context, tables []string, work func(conn *pgx.Conn, table, columns string) error) error {
	conn, err := pgx.Connect(ctx, d.uri)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, table := range tables {
		var columns string
		err := conn.QueryRow(ctx, `SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`, table).Scan(&columns)
		if err != nil {
			return err
		}
		if err := work(conn, table, columns); err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	return nil
}
