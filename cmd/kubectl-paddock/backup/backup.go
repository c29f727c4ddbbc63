// Package backup stores backups of sites in S3-compatible storage, in the native format, and fetches
// them. Each backup is a folder with a name that begins with the time at which it began. Its manifest is
// stored last and deleted first, so a folder with a manifest is a complete backup.
// See docs/decisions/0028-scheduled-backups.md.
package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	// maxDuration is the maximum duration of a backup. A longer one fails.
	maxDuration = 23 * time.Hour
	// abandonedAfter is the time since its beginning after which an incomplete backup is deleted by a
	// later one. It is longer than maxDuration, so that a backup that still runs is not deleted.
	abandonedAfter = 24 * time.Hour
	// ObjectsName is the name of the file with the Kubernetes objects of a backup.
	ObjectsName = "webhooks.json"
)

// Manifest is the manifest of a backup.
type Manifest struct {
	bulk.NativeManifest
	// Objects are files with Kubernetes objects, as a List in JSON.
	Objects []bulk.NativeFile `json:"objects"`
}

// Result is a complete backup.
type Result struct {
	Manifest
	// Name is the name of the folder of the backup.
	Name string
	// Removed are the names of the backups that were deleted afterwards.
	Removed []string
}

// Run backs up a site, which siteURL identifies. objects is a List of the site's Kubernetes objects in
// JSON. When the backup is complete, Run deletes the complete backups except for the newest keep ones,
// and incomplete ones that began more than a day ago. If keep is 0, it deletes nothing. If Run returns an
// error after the backup is complete, the name in the result is not empty.
func Run(ctx context.Context, config Config, site *siteapi.Client, siteURL string, objects []byte, keep int, progress *bulk.Progress) (Result, error) {
	f, err := open(config)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()
	began := time.Now()
	name := newName(began)
	manifest := Manifest{}
	manifest.NativeManifest, err = bulk.StreamNative(ctx, site, siteURL, progress, func(ctx context.Context, file string, content []byte) error {
		return f.put(ctx, name+"/"+file, content)
	})
	if err != nil {
		return Result{}, err
	}
	sum := sha256.Sum256(objects)
	manifest.Objects = []bulk.NativeFile{{Name: ObjectsName, Bytes: len(objects), SHA256: hex.EncodeToString(sum[:])}}
	if err := f.put(ctx, name+"/"+ObjectsName, objects); err != nil {
		return Result{}, err
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return Result{}, err
	}
	if err := f.put(ctx, name+"/"+bulk.ManifestName, append(text, '\n')); err != nil {
		return Result{}, err
	}
	removed, err := prune(ctx, f, name, keep, began)
	if err != nil {
		err = fmt.Errorf("the backup %s is complete, but not all old backups were deleted: %w", name, err)
	}
	return Result{Manifest: manifest, Name: name, Removed: removed}, err
}

// timeLayout is the layout of the time with which the name of a backup begins.
const timeLayout = "2006-01-02T15-04-05.000Z"

// newName returns the name of a backup. Its last part distinguishes backups that begin at the same time.
func newName(began time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // rand.Read never returns an error
	return began.UTC().Format(timeLayout) + "-" + hex.EncodeToString(random[:])
}

// timeOf returns the time at which the backup with a name began. It returns false if the name is not
// that of a backup.
func timeOf(name string) (time.Time, bool) {
	if len(name) != len(timeLayout)+9 || name[len(timeLayout)] != '-' {
		return time.Time{}, false
	}
	_, err := hex.DecodeString(name[len(timeLayout)+1:])
	at, malformed := time.Parse(timeLayout, name[:len(timeLayout)])
	return at, err == nil && malformed == nil
}
