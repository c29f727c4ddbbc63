package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/paddock-health/paddock/apiserver/clinic"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// demoDatabase is the name of the demo site's database in Postgres, and demoPassword is its
// password. The password need not be kept secret, because only programs on this machine reach the
// server. demoSecret is the name of the Secret with the URI of the database.
const (
	demoDatabase = "demo"
	demoPassword = "demo"
	demoSecret   = "demo-db"
)

// demoZone is the time zone of the demo site.
const demoZone = "Australia/Melbourne"

// newDemo returns the demo for a storage, cluster or postgres. It starts the Postgres server that
// it needs, over dir, which ends with this process.
func newDemo(ctx context.Context, storage, dir string) (demo, error) {
	if storage == "cluster" {
		return demo{site: "demo", samples: filepath.Join("config", "samples")}, nil
	}
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: dir, Secure: true})
	if err != nil {
		return demo{}, err
	}
	d := demo{site: "demo-postgres", samples: filepath.Join("config", "samples", "postgres")}
	uri, err := server.CreateDatabase(ctx, demoDatabase, demoPassword)
	d.prepare = func(ctx context.Context, paddock *localpaddock.Paddock) error {
		return paddock.SetSecret(ctx, d.site, demoSecret, "paddock.health/dsn", map[string]string{"uri": uri})
	}
	return d, err
}

// start applies the samples and waits for the site. It returns a token for it.
func (d demo) start(ctx context.Context, paddock *localpaddock.Paddock) (string, error) {
	if err := paddock.Apply(ctx, d.samples); err != nil {
		return "", err
	}
	if d.prepare != nil {
		if err := d.prepare(ctx, paddock); err != nil {
			return "", err
		}
	}
	// These settings are not in the samples, because tests that use the samples do not expect them.
	const settings = `{"spec":{"sandbox":true,"timeZone":"` + demoZone + `"}}`
	if _, err := paddock.Kubectl(ctx, "patch", "--namespace", d.site, "site/"+d.site, "--type=merge", "--patch", settings); err != nil {
		return "", err
	}
	_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", d.site, "site/"+d.site)
	if err != nil {
		return "", err
	}
	return d.token(ctx, paddock)
}

// token makes a token for the site.
func (d demo) token(ctx context.Context, paddock *localpaddock.Paddock) (string, error) {
	return paddock.Token(ctx, d.site, demoAccount, "paddock.health/"+d.site+"/"+d.site, tokenLife)
}

// load fills a site that has no patients with the data that o.Data selects. For the data clinic, each
// run also adds the slots of the days around today that are missing.
func (d demo) load(ctx context.Context, site client, o options) error {
	patients, err := site.countPatients(ctx)
	if err != nil {
		return err
	}
	if o.Data == "hl7" && patients == 0 {
		return loadExamples(ctx, site, o.bin)
	}
	if o.Data != "clinic" {
		return nil
	}
	if patients == 0 {
		fmt.Println("loading the records of Oak Street Animal Hospital")
		if err := clinic.Load(ctx, site.send); err != nil {
			return err
		}
	}
	zone, err := time.LoadLocation(demoZone)
	if err != nil {
		return err
	}
	return clinic.LoadSlots(ctx, site.send, time.Now(), zone)
}
