// Package module finds the folders of Paddock's own checkout.
package module

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

const path = "github.com/paddock-health/paddock"

// Bin returns the path of bin/ next to Paddock's go.mod, which it searches for from the working
// directory upwards. The folder may not exist yet.
func Bin() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(mod) == path {
			return filepath.Join(dir, "bin"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("the working directory %s is not in a checkout of module %s; run the program in one", wd, path)
		}
	}
}
