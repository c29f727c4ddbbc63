// Command images packs programs into container images without a daemon. It writes OCI archives, which
// containerd and skopeo, for example, can import. The same inputs make the same bytes. It is a module
// of its own so that its dependencies are not Paddock's.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// spec has the inputs of an image.
type spec struct {
	// name is the reference under which the archive is imported.
	name string
	// binaries has the file of the statically linked program by architecture. roots has, instead of a
	// program, the tar archive of a root file system by architecture.
	binaries, roots map[string]string
	entrypoint      []string
	command         []string
	environment     []string
	user            string
	created         time.Time
	labels          map[string]string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "images: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	s := spec{binaries: map[string]string{}, roots: map[string]string{}, labels: map[string]string{}}
	flags := flag.NewFlagSet("images", flag.ExitOnError)
	out := flags.String("out", "", "`file` to write: an OCI archive")
	flags.StringVar(&s.name, "name", "", "`reference` to import it under, such as ghcr.io/paddock-health/apiserver:1.0.0")
	flags.StringVar(&s.user, "user", "65532:65532", "`uid:gid` of the program")
	flags.Func("binary", "`arch=file` of a statically linked program; it becomes the entry point", pairs(s.binaries))
	flags.Func("root", "`arch=file` of a root file system (tar)", pairs(s.roots))
	flags.Func("label", "`key=value`, one of org.opencontainers.image.* without that prefix", pairs(s.labels))
	flags.Func("entrypoint", "entry point of a root file system", appendTo(&s.entrypoint))
	flags.Func("command", "arguments of the entry point", appendTo(&s.command))
	flags.Func("env", "`KEY=value` of the program's environment", appendTo(&s.environment))
	created := flags.String("created", "0", "`seconds` since 1970 that every file and the image are dated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(*created, 10, 64)
	if err != nil {
		return fmt.Errorf("-created: want seconds since 1970: %w", err)
	}
	s.created = time.Unix(seconds, 0).UTC()
	if *out == "" || s.name == "" || len(s.binaries)+len(s.roots) == 0 {
		return fmt.Errorf("-out, -name and at least one -binary or -root are required")
	}
	index, err := s.index()
	if err != nil {
		return fmt.Errorf("pack %s: %w", s.name, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("pack %s: %w", s.name, err)
	}
	if err := writeArchive(*out, s.name, index); err != nil {
		return fmt.Errorf("write %s: %w", *out, err)
	}
	fmt.Printf("%s@%s in %s\n", s.name, digest, *out)
	return nil
}

func pairs(into map[string]string) func(string) error {
	return func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("%q must have the form key=value", text)
		}
		into[key] = value
		return nil
	}
}

func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}
