// Package module finds the folders of Paddock's own checkout.
package module

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

const path = "github.com/paddock-health/paddock"

// Bin is bin/ beside Paddock's go.mod, looked for from the working directory upwards.
// It need not exist yet.
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
			return "", fmt.Errorf("%s is not inside module %s", wd, path)
		}
	}
}
