package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// The database of the demo site in Postgres. Nobody but this machine reaches it.
const (
	demoDatabase = "demo"
	demoPassword = "demo"
	demoSecret   = "demo-db"
)

// newDemo is the demo for a storage. It starts the Postgres server that it needs, over dir,
// which ends with this process.
func newDemo(ctx context.Context, storage, dir string) (demo, error) {
	switch storage {
	case "cluster":
		return demo{site: "demo", samples: filepath.Join("config", "samples")}, nil
	case "postgres":
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
	default:
		return demo{}, fmt.Errorf("--storage: %q is neither cluster nor postgres", storage)
	}
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
	_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "--namespace", d.site, "site/"+d.site)
	if err != nil {
		return "", err
	}
	return paddock.Token(ctx, d.site, demoAccount, "paddock.health/"+d.site+"/"+d.site, tokenLife)
}
