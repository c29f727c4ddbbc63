package v1alpha1

import (
	"reflect"
)

// Complete returns a copy of the Site in which the fields of spec that the Site does not set have the
// values of the class. Complete does not change storage, which the controller writes to the Site
// once.
func (c *SiteClass) Complete(site *Site) *Site {
	completed, class := site.DeepCopy(), c.DeepCopy()
	spec := &completed.Spec
	fillUnset(&spec.Limits, &class.Spec.Limits)
	if class.Spec.Retention != nil {
		if spec.Retention == nil {
			spec.Retention = &Retention{}
		}
		fillUnset(spec.Retention, class.Spec.Retention)
	}
	if spec.Privacy.Default == "" && len(spec.Privacy.Rules) == 0 { // default is set whenever spec.privacy is
		spec.Privacy = class.Spec.Privacy
	}
	if len(spec.Access.Issuers) == 0 {
		spec.Access.Issuers = class.Spec.Access.Issuers
	}
	if spec.Exposure == nil {
		spec.Exposure = class.Spec.Exposure
	}
	return completed
}

// fillUnset sets the fields of into that are nil to those of from. All fields of T are pointers.
func fillUnset[T any](into, from *T) {
	to, source := reflect.ValueOf(into).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		if to.Field(i).IsNil() {
			to.Field(i).Set(source.Field(i))
		}
	}
}

// NewStorage returns the storage of a new Site of the class whose spec.storage has its default.
func (c *SiteClass) NewStorage() Storage {
	class := c.DeepCopy().Spec.Storage
	if class == nil {
		return Storage{Type: StorageCluster}
	}
	storage := Storage{Type: class.Type, Cluster: class.Cluster}
	if class.Postgres != nil {
		storage.Postgres = &PostgresStorage{Provisioned: class.Postgres.Provisioned}
		if class.Postgres.Pool != nil {
			storage.Postgres.Pool = &PooledPostgres{}
		}
	}
	return storage
}
