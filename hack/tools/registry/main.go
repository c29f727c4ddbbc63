// Command registry is distribution's OCI registry with only the storage drivers that tests need. It
// is a module of its own so that its dependencies are not Paddock's.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}
