package provision

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// PoolName returns the name of all objects of a database of the template of a SiteClass. CloudNativePG
// appends numbers to the names of Clusters, so the name does not end with a number. It has at most 49
// characters, one less than CloudNativePG allows: at most 40 of the name of the SiteClass, at most 3 of the
// number, and 6 that are always the same.
func PoolName(className string, number int) string {
	return className + "-" + strconv.Itoa(number) + "-pool"
}

// PoolSite returns a Site that stands for a database of the template of a SiteClass: Render, NewSecret,
// Observe and Connection are called with it. Its namespace is that of the database. The SiteClass must have a
// template.
func PoolSite(class *v1alpha1.SiteClass, number int, namespace string) *v1alpha1.Site {
	name, cluster := PoolName(class.Name, number), class.Template().CloudNativePG
	return &v1alpha1.Site{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.SiteSpec{Storage: v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
			Provisioned: &v1alpha1.ProvisionedPostgres{
				Name: name, Engine: v1alpha1.EngineCloudNativePG, Version: cluster.Version, Instances: cluster.Instances,
				Storage: cluster.Storage, Resources: cluster.Resources, Backup: cluster.Backup,
			},
		}}},
	}
}
