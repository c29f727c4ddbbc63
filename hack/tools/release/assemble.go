package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/mod/semver"
)

// assembly has the sources of a release.
type assembly struct {
	// version has no leading v.
	version  string
	revision string
	created  time.Time
	// source is the folder of the repository.
	source string
	// programs is a folder with a folder for each platform, such as linux-amd64, that has the programs.
	programs string
	// images is a folder with the packed images, such as apiserver.tar.
	images string
	helm   string
	// registry is where the images will be, such as ghcr.io/paddock-health.
	registry string
	out      string
}

// pluginName is the name of the plugin of kubectl that users install.
const pluginName = "kubectl-paddock"

// imageNames are the names of the images, and of the program in each.
var imageNames = []string{"apiserver", "controller"}

func runAssemble(args []string) error {
	var a assembly
	flags := flag.NewFlagSet("assemble", flag.ContinueOnError)
	flags.StringVar(&a.version, "version", "", "`version`, such as 0.2.0")
	flags.StringVar(&a.revision, "revision", "", "`commit` that the programs were built from")
	created := flags.String("created", "0", "`seconds` since 1970 that all files are dated")
	flags.StringVar(&a.source, "source", ".", "`folder` of the repository")
	flags.StringVar(&a.programs, "programs", "", "`folder` with a folder of programs for each platform, such as linux-amd64")
	flags.StringVar(&a.images, "images", "", "`folder` with the packed images")
	flags.StringVar(&a.helm, "helm", "helm", "`path` of Helm")
	flags.StringVar(&a.registry, "registry", "ghcr.io/paddock-health", "`registry` of the images, as the chart will name it")
	flags.StringVar(&a.out, "out", "", "`folder` to write; it is replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := required(flags, "version", "revision", "programs", "images", "out"); err != nil {
		return err
	}
	if v := "v" + a.version; !semver.IsValid(v) || semver.Canonical(v) != v {
		return fmt.Errorf("-version: %q must be a semantic version without a leading v, such as 0.2.0", a.version)
	}
	seconds, err := strconv.ParseInt(*created, 10, 64)
	if err != nil {
		return fmt.Errorf("-created: %q must be a number of seconds since 1970", *created)
	}
	a.created = time.Unix(seconds, 0).UTC()
	return a.write()
}

// write makes the release in a folder next to out and then replaces out by it, so that a failure
// leaves no incomplete release.
func (a assembly) write() (err error) {
	final := a.out
	a.out = final + ".next"
	if err := os.RemoveAll(a.out); err != nil {
		return err
	}
	if err := os.MkdirAll(a.out, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(a.out)
	steps := []struct {
		what string
		do   func() error
	}{
		{"write the notes", a.writeNotes},
		{"pack the plugin", a.packPlugin},
		{"describe the images", a.collectImages},
		{"package the chart", a.packageChart},
		{"write the provenance", a.writeProvenance},
		{"write the checksums", func() error { return writeChecksums(a.out) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(a.out, final); err != nil {
		return err
	}
	fmt.Printf("release %s is in %s\n", a.version, final)
	return nil
}

// platforms returns the names of the folders in programs that have the program, such as linux-amd64,
// sorted. It is an error if there is none.
func (a assembly) platforms(program string) ([]string, error) {
	entries, err := os.ReadDir(a.programs)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(a.programs, entry.Name(), program+suffix(entry.Name()))); err == nil {
			found = append(found, entry.Name())
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		return nil, fmt.Errorf("no folder of %s has the program %s, such as linux-amd64/%[2]s", a.programs, program)
	}
	return found, nil
}
