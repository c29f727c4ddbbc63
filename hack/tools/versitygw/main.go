// Command versitygw serves the S3 API over plain HTTP, with the objects of a directory. It consists
// of the parts of Versity Gateway that tests need, without the backends in clouds. The credentials
// are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "`address` of the API")
	directory := flag.String("directory", "", "`path` of the directory with the objects and their attributes")
	bucket := flag.String("bucket", "", "`name` of a bucket to create")
	flag.Parse()
	if err := run(*address, *directory, *bucket); err != nil {
		fmt.Fprintf(os.Stderr, "versitygw: %v\n", err)
		os.Exit(1)
	}
}

func run(address, directory, bucket string) error {
	objects, attributes := filepath.Join(directory, "objects"), filepath.Join(directory, "attributes")
	for _, folder := range []string{filepath.Join(objects, bucket), attributes} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	// Not every file system has extended attributes, so attributes of objects are files.
	sidecar, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: attributes, Concurrency: 100})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: os.Getenv("AWS_ACCESS_KEY_ID"), RootUserSecret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Ports: []string{address}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000, KeepAlive: true, Quiet: true, HealthPath: "/health",
	})
}
