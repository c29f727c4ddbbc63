// Package provision renders the objects of a provisioned database, of a Site or of a pool, and reads the
// database's state from them. It uses no client and no clock: the reconcilers apply the objects.
package provision

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Engines are all engines that can run a provisioned database.
var Engines = []v1alpha1.PostgresEngine{v1alpha1.EngineStatefulSet, v1alpha1.EngineCloudNativePG}

// Name is the name of all objects of a provisioned database, unless a SiteMove has moved the Site from
// one provisioned database to another. Then it is SecondName, or Name again after the next such move.
// A namespace has at most one Site, so two names suffice, and the controller's rights can be limited
// to them. CloudNativePG appends numbers to Name, so SecondName must not end with one.
const (
	Name       = "paddock-postgres"
	SecondName = "paddock-postgres-b"
)

// Names are all names of provisioned databases.
var Names = []string{Name, SecondName}

// NameOf returns the name of all objects of the Site's database.
func NameOf(site *v1alpha1.Site) string {
	return cmp.Or(site.Spec.Storage.Postgres.Provisioned.Name, Name)
}

// Other returns the one of Names that is not name.
func Other(name string) string {
	if name == Name {
		return SecondName
	}
	return Name
}

// PodName returns the name of the only Pod of the StatefulSet with a name.
func PodName(name string) string { return name + "-0" }

// MajorAnnotation is an annotation of the object with the data. Its value is the major version of
// Postgres that wrote the data.
const MajorAnnotation = "paddock.health/postgres-major"

// port is the port of Postgres.
const port = 5432

// Options are the settings of a provisioned database that do not come from the Site's spec.
type Options struct {
	// Namespace is the controller's namespace. Only its Pods, and those of the database itself, can
	// connect to the database.
	Namespace string
	// PostgresImage and CloudNativePGImage are the images of databases with the engines StatefulSet
	// and CloudNativePG, without a tag.
	PostgresImage, CloudNativePGImage string
	// SiteKey is the site key of the data. It is empty for a database of a pool.
	SiteKey string
	// ClassName is the name of the SiteClass whose pool has the database. It is empty for a database of a
	// Site.
	ClassName string
	// Certificate identifies the server's certificate, as returned by the function Certificate. A
	// change of its value replaces the Pod.
	Certificate string
}

// Render returns the objects of the Site's database, except its Secret. They have no owner, so that
// neither the data nor the other objects are deleted with the Site.
func Render(site *v1alpha1.Site, o Options) []client.Object {
	if site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		return cloudNativePG(site, o)
	}
	return statefulSet(site, o)
}

// Host returns the host name of the database. The name resolves to the address of a Pod, so
// --postgres-networks must allow only the network of Pods.
func Host(site *v1alpha1.Site) string { return NameOf(site) + "." + site.Namespace + ".svc" }

// replicaHost returns the host name of the standbys of the database, or "" if it has none. The name
// resolves to the addresses of Pods.
func replicaHost(site *v1alpha1.Site) string {
	spec := site.Spec.Storage.Postgres.Provisioned
	if spec.Engine != v1alpha1.EngineCloudNativePG || instancesOf(spec) == 1 {
		return ""
	}
	return replicaService(NameOf(site)) + "." + site.Namespace + ".svc"
}

// replicaService returns the name of the Service of the standbys of a database. CloudNativePG has Services
// of its own with the endings -rw, -ro and -r.
func replicaService(name string) string { return name + "-replicas" }

// Major returns the major version of Postgres in the Site's spec, such as 17.
func Major(site *v1alpha1.Site) string {
	major, _, _ := strings.Cut(site.Spec.Storage.Postgres.Provisioned.Version, ".")
	return major
}

// selector returns the labels that select the StatefulSet's Pod.
func selector(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "postgres", "app.kubernetes.io/instance": name}
}

// owner returns the label by which the objects of a database are recognized as ours.
func (o Options) owner() (label, value string) {
	if o.ClassName != "" {
		return v1alpha1.SiteClassLabel, o.ClassName
	}
	return v1alpha1.SiteKeyLabel, o.SiteKey
}

func about(site *v1alpha1.Site, o Options) metav1.ObjectMeta {
	labels := map[string]string{
		"app.kubernetes.io/part-of":    "paddock",
		"app.kubernetes.io/managed-by": "paddock-controller",
	}
	label, value := o.owner()
	labels[label] = value
	for name, value := range selector(NameOf(site)) {
		labels[name] = value
	}
	m := metav1.ObjectMeta{Namespace: site.Namespace, Name: NameOf(site), Labels: labels}
	if o.ClassName == "" {
		m.Annotations = map[string]string{v1alpha1.SiteAnnotation: site.Namespace + "/" + site.Name}
	}
	return m
}

// aboutData returns the metadata of the object with the data.
func aboutData(site *v1alpha1.Site, o Options) metav1.ObjectMeta {
	m := about(site, o)
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[MajorAnnotation] = Major(site)
	return m
}
