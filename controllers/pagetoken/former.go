package pagetoken

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// formerSecret is the Secret that has the key of page tokens in releases up to v0.1. The chart
// rendered it, or an administrator created it.
const formerSecret = "paddock-page-token"

const (
	// helmRecord is the type of the Secrets in which Helm keeps the revisions of a release.
	helmRecord corev1.SecretType = "helm.sh/release.v1"
	// maxRecord is the maximum size in bytes of a decompressed record of Helm. A larger one is
	// skipped.
	maxRecord = 64 << 20
)

// formerKey returns the key that API servers of releases up to v0.1 use, or nil if there is none.
// source describes where it was found. An upgrade by Helm removes formerSecret, often before the
// controller starts. Helm's record of the previous revision then still has it.
func (k *Keeper) formerKey(ctx context.Context) (key []byte, source string, err error) {
	name := client.ObjectKey{Namespace: k.Secret.Namespace, Name: formerSecret}
	former := &corev1.Secret{}
	if err := k.Live.Get(ctx, name, former); client.IgnoreNotFound(err) != nil {
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	if key := former.Data[dataKey]; valid(key) {
		return bytes.TrimSpace(key), "Secret " + formerSecret, nil
	}
	var records corev1.SecretList
	err = k.Live.List(ctx, &records, client.InNamespace(k.Secret.Namespace), client.MatchingFields{"type": string(helmRecord)})
	if err != nil {
		return nil, "", fmt.Errorf("list the Secrets of Helm releases in namespace %s: %w", k.Secret.Namespace, err)
	}
	slices.SortFunc(records.Items, newestFirst)
	for _, record := range records.Items {
		manifest, err := manifestOf(record.Data["release"])
		if err != nil {
			log.FromContext(ctx).Info("skipped a Secret of a Helm release that cannot be decoded", "secret", record.Name, "error", err.Error())
			continue
		}
		if key := keyIn(manifest); key != nil {
			return key, "Helm's record " + record.Name, nil
		}
	}
	return nil, "", nil
}

// newestFirst compares Helm's records by creation time, and by revision if they were created in the
// same second. The newest comes first.
func newestFirst(a, b corev1.Secret) int {
	revision := func(record corev1.Secret) int {
		n, _ := strconv.Atoi(record.Labels["version"]) // Helm always writes a number
		return n
	}
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(revision(b), revision(a)))
}

// manifestOf returns the manifests of a revision from Helm's record, which is JSON, compressed with
// gzip, in base64.
func manifestOf(record []byte) (string, error) {
	compressed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(record)))
	if err != nil {
		return "", fmt.Errorf("decompress the release: %w", err)
	}
	var release struct {
		Manifest string `json:"manifest"`
	}
	if err := json.NewDecoder(io.LimitReader(compressed, maxRecord)).Decode(&release); err != nil {
		return "", fmt.Errorf("decode the release: %w", err)
	}
	return release.Manifest, nil
}

// keyIn returns the key in the manifest of formerSecret, or nil if the manifests have none.
func keyIn(manifests string) []byte {
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		if !strings.Contains(manifest, formerSecret) {
			continue
		}
		var secret corev1.Secret
		if err := yaml.Unmarshal([]byte(manifest), &secret); err != nil || secret.Kind != "Secret" || secret.Name != formerSecret {
			continue // an object of another kind, such as a Deployment that mounts the Secret
		}
		if key := secret.Data[dataKey]; valid(key) {
			return bytes.TrimSpace(key)
		}
	}
	return nil
}
