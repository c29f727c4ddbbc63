package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

const (
	// fleetServers is the number of Postgres servers, and fleetDatabases that of the databases in them.
	fleetServers, fleetDatabases = 2, 8
	// fleetAPIServers is the number of API servers.
	fleetAPIServers = 2
	// fleetClass is the name of the SiteClass and of the namespace of the caller.
	fleetClass = "fleet"
)

// fleetSettings allow the connections of four databases to a server: 16 for each of two API servers and
// the delivery process, and those of the controller and of River.
var fleetSettings = map[string]string{"max_connections": "300"}

// fleet is an installation with many Sites on several databases.
type fleet struct {
	options options
	in      installation
	objects client.Client
	// clinics are the Sites of the fleet, without the Site demo.
	clinics []clinic
}

// withFleet starts what benchFleet measures, and runs it.
func withFleet(ctx context.Context, o options) error {
	o.apiServers = fleetAPIServers
	return withPaddock(ctx, o, benchFleet)
}

// benchFleet creates o.sites Sites in a pool of databases, and reports how fast they are created,
// what each costs, how fast requests to random Sites are, and how a database is drained while all
// are served.
func benchFleet(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-postgres")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	objects, err := adminClient(in)
	if err != nil {
		return err
	}
	f := &fleet{options: o, in: in, objects: objects}
	stop, err := f.startDatabases(ctx, dir)
	defer stop()
	if err != nil {
		return err
	}
	fmt.Printf("%d Sites, %d databases of %d Postgres servers, %d API servers, %d CPUs, fsync on\n",
		o.sites, fleetDatabases, fleetServers, fleetAPIServers, runtime.NumCPU())
	memory := &fleetMemory{in: in}
	for _, step := range []func(context.Context) error{
		memory.record,
		f.createSites,
		f.tellIdleWrites,
		memory.record,
		f.fill,
		f.compareLatency,
		memory.record,
		func(context.Context) error { return memory.tell(o.sites) },
		f.drainDatabase,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startDatabases starts the servers, and creates the SiteClass and the caller of the fleet. stop ends
// the servers that were started. It is not nil, also after an error.
func (f *fleet) startDatabases(ctx context.Context, dir string) (stop func(), err error) {
	var servers []*localpostgres.Server
	stop = func() {
		for _, server := range servers {
			_ = server.Stop() // the server ends with this process in any case
		}
	}
	for n := range fleetServers {
		server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, fmt.Sprint(n)), Settings: fleetSettings})
		if err != nil {
			return stop, err
		}
		servers = append(servers, server)
	}
	for n := range fleetDatabases {
		uri, err := servers[n%fleetServers].CreateDatabase(ctx, poolDatabase(n), poolDatabase(n))
		if err == nil {
			err = f.in.paddock.SetSecret(ctx, "paddock-system", poolDatabase(n), "paddock.health/dsn", map[string]string{"uri": uri})
		}
		if err != nil {
			return stop, err
		}
	}
	file := f.in.cluster.File("fleet.yaml")
	if err := os.WriteFile(file, f.manifest(), 0o600); err != nil {
		return stop, err
	}
	_, err = f.in.paddock.Kubectl(ctx, "apply", "--filename", file)
	return stop, err
}

// settle waits for the time drain, in which the programs finish what they have begun.
func settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for the programs to be idle: %w", ctx.Err())
	case <-time.After(drain):
		return nil
	}
}
