// Command release assembles a release of Paddock, pushes it to an OCI registry, and verifies it
// there. It is a module of its own so that its dependencies are not Paddock's.
//
// A release is a folder with everything that is published: images as OCI archives, the chart, the
// plugin's archives, bills of materials, provenance, checksums and notes. The same programs make
// the same bytes, except for signatures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// command is one of the subcommands.
type command struct {
	summary string
	run     func(args []string) error
}

var commands = map[string]command{
	"assemble": {"write the folder of a release from built programs and packed images", runAssemble},
	"push":     {"push the images and the chart of a release, with signatures and attestations", runPush},
	"verify":   {"verify the signatures and attestations of a release in a registry, and of its files", runVerify},
	"keygen":   {"create a pair of signing keys", runKeygen},
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		if c, found := commands[args[0]]; found {
			return c.run(args[1:])
		}
	}
	var usage strings.Builder
	for _, name := range []string{"assemble", "push", "verify", "keygen"} {
		fmt.Fprintf(&usage, "\n  %-9s %s", name, commands[name].summary)
	}
	return fmt.Errorf("the first argument must be a command:%s", usage.String())
}

// required returns an error that names the flags without a value.
func required(flags *flag.FlagSet, names ...string) error {
	var missing []string
	for _, name := range names {
		if flags.Lookup(name).Value.String() == "" {
			missing = append(missing, "-"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s needs %s", flags.Name(), strings.Join(missing, ", "))
	}
	return nil
}
