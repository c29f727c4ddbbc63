package site

import (
	"testing"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestSameDatabase(t *testing.T) {
	external := func(secret string) *v1alpha1.Storage {
		return &v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
			External: &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: secret}},
		}}
	}
	provisioned := func(engine v1alpha1.PostgresEngine, name, version string) *v1alpha1.Storage {
		return &v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{
			Provisioned: &v1alpha1.ProvisionedPostgres{Engine: engine, Name: name, Version: version},
		}}
	}
	pool := func(region string) *v1alpha1.Storage {
		return &v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{Region: region}}}
	}
	cluster := &v1alpha1.Storage{Type: v1alpha1.StorageCluster}
	set, cnpg := v1alpha1.EngineStatefulSet, v1alpha1.EngineCloudNativePG
	tests := map[string]struct {
		a, b *v1alpha1.Storage
		want bool
	}{
		"the cluster":                   {cluster, cluster.DeepCopy(), true},
		"the cluster and a database":    {cluster, external("db"), false},
		"one Secret":                    {external("db"), external("db"), true},
		"two Secrets":                   {external("db"), external("other"), false},
		"a Secret and a pool":           {external("db"), pool(""), false},
		"a pool, in another region":     {pool("eu"), pool("us"), true},
		"the default name, spelled out": {provisioned(set, "", "17"), provisioned(set, "paddock-postgres", "17.6"), true},
		"two provisioned databases":     {provisioned(set, "", "17"), provisioned(set, "paddock-postgres-b", "17"), false},
		"two engines":                   {provisioned(set, "", "17"), provisioned(cnpg, "", "17"), false},
		"a pool and a provisioned one":  {pool(""), provisioned(set, "", "17"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sameDatabase(tt.a, tt.b); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
			if got := sameDatabase(tt.b, tt.a); got != tt.want {
				t.Errorf("got %t with swapped storages, want %t", got, tt.want)
			}
		})
	}
}
