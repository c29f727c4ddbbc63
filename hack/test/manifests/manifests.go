// Package manifests checks manifests without a cluster: by the Go types of the pinned release of
// Kubernetes, and by the OpenAPI document of any release.
package manifests

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// otherGroups are API groups that are not Kubernetes' own.
var otherGroups = []string{"paddock.health", "cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"}

// document is one object of a file with several.
type document struct {
	text   string
	object unstructured.Unstructured
}

// documents returns the objects of Kubernetes' own groups. The error has the parse errors of documents
// that are not YAML; the other documents are returned all the same.
func documents(text string) (all []document, err error) {
	var errs []error
	for part := range strings.SplitSeq(text, "\n---\n") {
		d := document{text: part}
		if err := yaml.Unmarshal([]byte(part), &d.object.Object); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(d.object.Object) > 0 && !slices.Contains(otherGroups, d.object.GroupVersionKind().Group) {
			all = append(all, d)
		}
	}
	return all, errors.Join(errs...)
}
