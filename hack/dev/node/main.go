//go:build linux

// Command node runs a cluster of one real node until it gets SIGINT or SIGTERM. Its arguments are
// image archives to import.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/paddock-health/paddock/hack/dev/localnode"
)

func main() {
	dir := flag.String("dir", ".local/node", "`folder` for state and logs")
	bin := flag.String("bin", "bin", "`folder` with the programs, and the node's images in e2e/")
	flag.Parse()
	err := localnode.Enclose(*dir)
	if err == nil {
		err = run(*dir, *bin, flag.Args())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "node: %v\n", err)
		os.Exit(1)
	}
}

func run(dir, bin string, archives []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for _, image := range []string{"coredns", "pause"} {
		archives = append(archives, filepath.Join(bin, "e2e", image+".tar"))
	}
	node, err := localnode.Start(ctx, localnode.Options{
		Dir: dir, BinDir: bin, Out: os.Stderr, Archives: archives,
		PauseImage: "paddock.local/pause:e2e", CoreDNSImage: "paddock.local/coredns:e2e",
	})
	if err != nil {
		return err
	}
	fmt.Printf("The node is Ready. In another terminal:\n  %s\n  export KUBECONFIG=%s\n", localnode.EnterCommand(), node.Cluster.Kubeconfig())
	<-ctx.Done()
	return node.Stop()
}
