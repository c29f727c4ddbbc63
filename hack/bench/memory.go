package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/prometheus/procfs"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// benchMemory prints the memory of kube-apiserver and of the API server after the Patients of a site
// in Postgres were listed through the aggregator, page by page: first when the site is small, then
// with all its records.
func benchMemory(ctx context.Context, o options, in installation) error {
	return withPatients(ctx, in, func(client *http.Client, server *localpostgres.Server) error {
		patients := objects{client, in.cluster.Config().Host, recordGroup, databaseSite}
		for n := range listed {
			if err := patients.create(ctx, n); err != nil {
				return err
			}
		}
		fmt.Print("| Patients listed | pages | kube-apiserver: anonymous memory | peak resident memory | API server: anonymous memory | peak resident memory |\n|---|---|---|---|---|---|\n")
		if err := tellMemory(ctx, in, patients); err != nil {
			return err
		}
		d, err := databaseOf(ctx, o, in, server)
		if err != nil {
			return err
		}
		if err := d.fill(ctx); err != nil {
			return err
		}
		return tellMemory(ctx, in, patients)
	})
}

// tellMemory lists all Patients three times, and prints the memory that kube-apiserver and the API
// server then have: the anonymous memory, and the peak of the resident memory.
func tellMemory(ctx context.Context, in installation, patients objects) error {
	var found, pages int
	for range 3 {
		var err error
		if found, pages, err = patients.walk(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("| %d | %d |", found, pages)
	for _, pid := range []int{in.cluster.APIServer().Pid(), in.paddock.APIServers[0].Pid()} {
		process, err := procfs.NewProc(pid)
		if err != nil {
			return err
		}
		status, err := process.NewStatus()
		if err != nil {
			return err
		}
		const mebi = 1 << 20
		fmt.Printf(" %d MiB | %d MiB |", status.RssAnon/mebi, status.VmHWM/mebi)
	}
	fmt.Println()
	return nil
}

// walk lists all objects, 500 at a time, as kubectl does.
func (o objects) walk(ctx context.Context) (found, pages int, err error) {
	next := ""
	for {
		path := fmt.Sprintf("?limit=%d&continue=%s", listed, url.QueryEscape(next))
		text, err := o.ask(ctx, http.MethodGet, path, "application/json", nil, http.StatusOK)
		if err != nil {
			return 0, 0, err
		}
		var list struct {
			Metadata struct{ Continue string }
			Items    []struct{}
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return 0, 0, fmt.Errorf("GET %s: %w", path, err)
		}
		found, pages, next = found+len(list.Items), pages+1, list.Metadata.Continue
		if next == "" {
			return found, pages, nil
		}
	}
}
