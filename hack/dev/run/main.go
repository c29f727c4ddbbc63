// Command run is the program of `make run`. It runs all of Paddock on an embedded control plane, with
// a demo site, until it gets SIGINT or SIGTERM or one of the main programs ends. Its data stays for
// the next run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/run/preflight"
)

const (
	demoAccount = "editor"
	// tokenLife is how long the demo's token is valid. A new one is written after half of it.
	tokenLife = 24 * time.Hour
)

// demo is a sample of config/samples. Its namespace has the name of the Site.
type demo struct {
	site, samples string
	// prepare makes the objects that the Site needs and that the samples do not have. It may be nil.
	prepare func(context.Context, *localpaddock.Paddock) error
}

type options struct {
	preflight.Settings
	bin, source string
	open        bool
	cluster     localcluster.Options
}

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var o options
	o.AddFlags(flag.CommandLine)
	flag.StringVar(&o.bin, "bin", "bin", "folder with the programs")
	flag.StringVar(&o.source, "source", ".", "the repository")
	flag.BoolVar(&o.open, "open", false, "serve requests without a token too, with the rights of the demo's token")
	flag.IntVar(&o.cluster.APIServerPort, "kube-apiserver-port", 0, "port of kube-apiserver; 0: a free one, kept for the next run")
	flag.IntVar(&o.cluster.EtcdClientPort, "etcd-port", 0, "port of etcd; 0: a free one, kept for the next run")
	flag.Parse()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	began := time.Now()
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	lock, err := o.Take(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // the process ends anyway
	// A run that was killed has left its files.
	files := outputs(dir)
	if err := files.remove(); err != nil {
		return err
	}
	o.cluster.Dir, o.cluster.BinDir, o.cluster.Out = filepath.Join(dir, "cluster"), o.bin, os.Stdout
	o.cluster.Controllers = true // they end namespaces, collect garbage and compute quotas
	cluster, err := localcluster.Start(ctx, o.cluster)
	if err != nil {
		return err
	}
	defer func() {
		fmt.Println("stopping (about 10 s)")
		err = errors.Join(err, files.remove(), cluster.Stop())
	}()
	shown, err := newDemo(ctx, o.Storage, filepath.Join(dir, "postgres"))
	if err != nil {
		return err
	}
	serving := localpaddock.Options{BinDir: o.bin, SourceDir: o.source, Port: o.Port, Aggregated: true}
	var door *openDoor
	if o.open {
		if door, err = listenOpen(o.Port); err != nil {
			return err
		}
		serving.Port, serving.PublicURL = 0, door.url()
	}
	paddock, err := localpaddock.Start(ctx, cluster, serving)
	if err != nil {
		return err
	}
	token, err := shown.start(ctx, paddock)
	if err != nil {
		return err
	}
	url := paddock.PublicURL() + "/site/" + shown.site
	received, err := startReceiver(ctx, paddock, shown.site, dir)
	if err != nil {
		return err
	}
	defer received.close()
	if err := shown.load(ctx, client{base: paddock.URLs[0] + "/site/" + shown.site, token: token}, o); err != nil {
		return err
	}
	if err := files.write(url, token, cluster.Kubeconfig()); err != nil {
		return err
	}
	if door != nil {
		go door.serve(ctx, paddock.URLs[0], files)
	}
	go files.renewToken(ctx, func() (string, error) { return shown.token(ctx, paddock) })
	printReady(url, shown.site, dir, o, time.Since(began))
	return wait(ctx, cluster, paddock)
}

// wait returns when ctx or one of the programs ends. The controller also ends when the machine was suspended,
// and is then started again.
func wait(ctx context.Context, cluster *localcluster.Cluster, paddock *localpaddock.Paddock) error {
	controller := make(chan error, 1)
	go func() { controller <- localpaddock.KeepController(ctx, paddock.Controllers[0]) }()
	select {
	case <-ctx.Done():
		return nil
	case <-paddock.APIServers[0].Exited():
		return fmt.Errorf("the API server ended: see %s", paddock.APIServers[0].LogFile())
	case err := <-controller:
		return err
	case <-cluster.APIServer().Exited():
		return fmt.Errorf("kube-apiserver ended: see %s", cluster.APIServer().LogFile())
	case <-cluster.ControllerManager().Exited():
		return fmt.Errorf("cluster-controllers ended: see %s", cluster.ControllerManager().LogFile())
	case <-cluster.Etcd().Exited():
		return fmt.Errorf("etcd ended: see %s", cluster.Etcd().LogFile())
	}
}
