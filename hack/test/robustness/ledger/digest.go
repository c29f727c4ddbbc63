package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// digestLength is the length of a digest in hexadecimal digits. It is long enough to distinguish
// versions of the code, and short enough to keep the lines of the ledger readable.
const digestLength = 16

// goPackage has the members of the output of go list that are used here.
type goPackage struct {
	ImportPath, Dir     string
	GoFiles, EmbedFiles []string
	Module              *struct {
		Path, Version, GoVersion string
		Main                     bool
		Replace                  *struct{ Path, Version string }
	}
}

// Digest returns a digest of the code that is linked into a program of the module in dir: its Go files
// and migrations (SQL), and the versions of the modules that it uses. Tests, comments, white space,
// documents and other programs do not count.
func Digest(dir, program string) (string, error) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Module", program)
	list.Dir = dir
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the packages of %s: %w", program, err)
	}
	sum := sha256.New()
	modules := map[string]bool{}
	packages := json.NewDecoder(bytes.NewReader(output))
	for {
		var p goPackage
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("decode the output of go list for %s: %w", program, err)
		}
		switch {
		case p.Module == nil: // a package of the standard library; the Go version of go.mod stands for it
		case p.Module.Main:
			modules["go "+p.Module.GoVersion] = true
			if err := addFiles(sum, p); err != nil {
				return "", fmt.Errorf("read the package %s: %w", p.ImportPath, err)
			}
		case p.Module.Replace != nil:
			modules[p.Module.Path+" => "+p.Module.Replace.Path+" "+p.Module.Replace.Version] = true
		default:
			modules[p.Module.Path+" "+p.Module.Version] = true
		}
	}
	fmt.Fprintln(sum, strings.Join(slices.Sorted(maps.Keys(modules)), "\n"))
	return hex.EncodeToString(sum.Sum(nil))[:digestLength], nil
}

// addFiles adds the names and contents of the files of a package. Of a Go file it adds what addGo adds.
func addFiles(sum io.Writer, p goPackage) error {
	files := slices.Clone(p.GoFiles)
	for _, file := range p.EmbedFiles {
		if filepath.Ext(file) == ".sql" {
			files = append(files, file)
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s/%s\n", p.ImportPath, file)
		if filepath.Ext(file) != ".go" {
			fmt.Fprintf(sum, "%d\n%s", len(content), content)
		} else if err := addGo(sum, file, content); err != nil {
			return err
		}
	}
	return nil
}

// addGo adds the tokens of a Go file, and its directives (//go:embed). Other comments and white space
// do not change the program.
func addGo(sum io.Writer, name string, content []byte) error {
	var failures scanner.ErrorList
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(name, -1, len(content)), content, failures.Add, scanner.ScanComments)
	for {
		_, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return failures.Err()
		case kind != token.COMMENT || strings.HasPrefix(text, "//go:"):
			fmt.Fprintf(sum, "%s %q\n", kind, text)
		}
	}
}
