// Command oldest checks manifests on standard input by the types of the oldest supported release of Kubernetes.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/paddock-health/paddock/hack/test/manifests"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		var checked int
		if checked, err = manifests.Check(string(text)); err == nil {
			fmt.Printf("%d documents fit\n", checked)
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
