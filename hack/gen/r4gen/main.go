// Command r4gen writes the tables of apiserver/fhir/r4 from HL7's definitions of
// FHIR R4: types, elements, value sets, reference targets, search parameters and compartments.
// It adds the search parameters of search_additions.json, and writes the list of all of them for users.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

func main() {
	out := flag.String("out", ".", "folder to which the tables are written")
	cache := flag.String("cache", "bin", "folder in which HL7's package is kept")
	flag.Parse()
	if err := run(*out, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "r4gen:", err)
		os.Exit(1)
	}
}

func run(out, cache string) error {
	path, err := examples.Fetch(context.Background(), cache)
	if err != nil {
		return err
	}
	d, err := load(path, out)
	if err != nil {
		return err
	}
	files, err := generate(d)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
