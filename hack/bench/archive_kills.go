package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	// killedSite is the Site into which killed imports go.
	killedSite = "killed"
	// archiveKills is how often the export is killed, and how often the import is killed.
	archiveKills = 3
	// changedEvery and deletedEvery select the records that get a second version, and those that are
	// deleted.
	changedEvery, deletedEvery = 10, 97
)

// benchKilledArchive changes and deletes some records of a site, kills an export of the site and the
// import into another site at random times, kills and restarts the API server during the import, and
// fails unless both sites are equal in the end, versions and tombstones included.
func benchKilledArchive(ctx context.Context, o options, in installation) error {
	dir, d, end, err := newArchive(ctx, o, in)
	if err != nil {
		return err
	}
	defer end()
	if err := d.change(ctx); err != nil {
		return err
	}
	if err := addArchiveSite(ctx, in, d, dir, killedSite); err != nil {
		return err
	}
	source, target, err := archiveClients(ctx, in, killedSite)
	if err != nil {
		return err
	}
	want, err := exportTo(ctx, source, databaseSite, filepath.Join(dir, "at-once"))
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "killed")
	begun, err := killed(ctx, o, in, time.Second, nil, "export", databaseSite, "-n", databaseSite, "--as-service-account", "editor", "--directory", folder, "--native")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, bulk.ManifestName))
	if err != nil {
		return err
	}
	var got bulk.NativeManifest
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	if got.SHA256 != want.SHA256 || got.Versions != want.Versions {
		return fmt.Errorf("the killed export has the digest %s and %d versions, want %s and %d", got.SHA256, got.Versions, want.SHA256, want.Versions)
	}
	fmt.Printf("Export of %d records with %d versions: killed %d times, and equal to one that was not.\n", d.records, want.Versions, begun-1)

	server := in.paddock.APIServers[0]
	restart := func() error { return errors.Join(server.Kill(), server.Restart(ctx)) }
	begun, err = killed(ctx, o, in, 12*time.Second, restart, "import", killedSite, "-n", killedSite, "--as-service-account", "editor", "--directory", folder)
	if err != nil {
		return err
	}
	got, err = exportTo(ctx, target, killedSite, filepath.Join(dir, "copy"))
	if err != nil {
		return err
	}
	if got.SHA256 != want.SHA256 || got.Versions != want.Versions {
		return fmt.Errorf("the copy has the digest %s and %d versions, want %s and %d", got.SHA256, got.Versions, want.SHA256, want.Versions)
	}
	fmt.Printf("Import: killed %d times, and the API server once. The digest of the copy is that of the site: %s.\n", begun-1, got.SHA256)
	return tellPeak(in)
}

// exportTo exports a site into a folder.
func exportTo(ctx context.Context, client *siteapi.Client, site, folder string) (bulk.NativeManifest, error) {
	return bulk.ExportNative(ctx, client, site, folder, &bulk.Progress{Out: io.Discard, Now: time.Now})
}

// killed runs kubectl-paddock until it succeeds. It kills the first archiveKills runs, each after a
// random time from a tenth of within to 1.1 times within, unless the run has ended before. It calls
// also, if set, at the beginning of the run that is not killed, and fails if this run fails. It
// returns the number of runs.
func killed(ctx context.Context, o options, in installation, within time.Duration, also func() error, args ...string) (begun int, err error) {
	for {
		var output bytes.Buffer
		program := exec.CommandContext(ctx, filepath.Join(o.bin, "kubectl-paddock"), args...)
		program.Env = append(os.Environ(), "KUBECONFIG="+in.cluster.Kubeconfig())
		program.Stdout, program.Stderr = &output, &output
		if err := program.Start(); err != nil {
			return begun, err
		}
		begun++
		if begun <= archiveKills {
			time.Sleep(within/10 + rand.N(within))
			_ = program.Process.Kill() // it may have ended
		} else if also != nil {
			if err := also(); err != nil {
				return begun, err
			}
		}
		err := program.Wait()
		if err == nil {
			return begun, nil
		}
		if begun > archiveKills {
			return begun, fmt.Errorf("kubectl-paddock %v: %w\n%s", args, err, output.Bytes())
		}
	}
}

// change gives some records a second version and deletes some other records, as selected by
// changedEvery and deletedEvery. Practitioners stay unchanged.
func (d *database) change(ctx context.Context) error {
	site, pool, err := d.open(ctx, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	var ops []store.Op
	for n := d.practitioners(); n < d.records; n++ {
		typeName, id, text := d.text(n)
		switch {
		case n%deletedEvery == 0:
			ops = append(ops, store.Op{Kind: store.Delete, Key: store.Key{Type: typeName, ID: id}, Method: store.MethodDelete})
		case n%changedEvery == 0:
			op, err := putOf(typeName, id, bytes.Replace(text, []byte("{"), []byte(`{"language":"en",`), 1))
			if err != nil {
				return err
			}
			ops = append(ops, op)
		}
		if len(ops) == loadPortion/10 || n == d.records-1 {
			if _, err := site.Write(ctx, ops); err != nil {
				return err
			}
			ops = nil
		}
	}
	return d.vacuum(ctx)
}
