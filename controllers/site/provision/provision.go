// Package provision says what a database that a Site asks for consists of, and reads from
// the objects how far it is. All of it is pure: no client, no clock; who applies the
// objects is the reconciler.
package provision

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Engines are the engines there are.
var Engines = []v1alpha1.PostgresEngine{v1alpha1.EngineStatefulSet, v1alpha1.EngineCloudNativePG}

// Name is that of every object of a provisioned database. A namespace has one Site, so one
// name is enough, and the controller's rights can be bound to it.
const Name = "paddock-postgres"

// PodName is that of the StatefulSet's only Pod.
const PodName = Name + "-0"

// MajorAnnotation is on what holds the data, with the major version that wrote it.
const MajorAnnotation = "paddock.health/postgres-major"

// port is that of Postgres.
const port = 5432

// Options are what a Site has no say in.
type Options struct {
	// Namespace is the operator's own, from which alone the database is reached.
	Namespace string
	// PostgresImage and CloudNativePGImage are images of Postgres, without a tag.
	PostgresImage, CloudNativePGImage string
	// SiteKey is the key of the data.
	SiteKey string
	// Certificate names the server's certificate: Pods are replaced when it changes.
	Certificate string
}

// Render returns the objects of the database that the Site asks for, but for its Secret.
// What holds data has no owner: it must not go with the Site unasked.
func Render(site *v1alpha1.Site, o Options) []client.Object {
	if site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		return cloudNativePG(site, o)
	}
	return statefulSet(site, o)
}

// Host is the name under which the operator's programs reach the database. It has the address
// of a Pod, so that no other network than that of Pods has to be allowed.
func Host(site *v1alpha1.Site) string { return Name + "." + site.Namespace + ".svc" }

// Major is the major version that the Site asks for.
func Major(site *v1alpha1.Site) string {
	major, _, _ := strings.Cut(site.Spec.Storage.Postgres.Provisioned.Version, ".")
	return major
}

// selector finds the StatefulSet's Pod.
var selector = map[string]string{"app.kubernetes.io/name": "postgres", "app.kubernetes.io/instance": Name}

func about(site *v1alpha1.Site, o Options) metav1.ObjectMeta {
	labels := map[string]string{
		"app.kubernetes.io/part-of":    "paddock",
		"app.kubernetes.io/managed-by": "paddock-controller",
		v1alpha1.SiteKeyLabel:          o.SiteKey,
	}
	for name, value := range selector {
		labels[name] = value
	}
	return metav1.ObjectMeta{
		Namespace: site.Namespace, Name: Name, Labels: labels,
		Annotations: map[string]string{v1alpha1.SiteAnnotation: site.Namespace + "/" + site.Name},
	}
}

// aboutData is the metadata of what holds the data.
func aboutData(site *v1alpha1.Site, o Options) metav1.ObjectMeta {
	m := about(site, o)
	m.Annotations[MajorAnnotation] = Major(site)
	return m
}
