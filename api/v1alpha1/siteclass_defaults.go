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

// Database returns the database with the given name in the class's pool, or nil if there is none.
func (c *SiteClass) Database(name string) *PoolDatabase {
	if pool := c.Pool(); pool != nil {
		for i := range pool.Databases {
			if pool.Databases[i].Name == name {
				return &pool.Databases[i]
			}
		}
	}
	return nil
}

// Pool returns the pool of the class, or nil if spec.storage of the class has none.
func (c *SiteClass) Pool() *PostgresPool {
	if c.Spec.Storage == nil || c.Spec.Storage.Postgres == nil {
		return nil
	}
	return c.Spec.Storage.Postgres.Pool
}

// Placed returns the number of Sites in each database of the class, by the name of the database.
// Deleted Sites with retained data count. A Site that is being moved counts in both databases.
func (c *SiteClass) Placed(claims []SiteClaim) map[string]int32 {
	placed := map[string]int32{}
	for i := range claims {
		for _, p := range []*Placement{claims[i].Spec.Placement, claims[i].Spec.Reserved} {
			if p != nil && p.ClassName == c.Name {
				placed[p.Database]++
			}
		}
	}
	return placed
}

// Free returns how many more Sites can be placed on the database. placed is the number of Sites in
// the database, as Placed returns it.
func (d *PoolDatabase) Free(placed int32) int32 {
	if d.Drain || d.Capacity == nil {
		return 0
	}
	return max(0, *d.Capacity-placed)
}

// RoomFor returns the database of the class's pool with the most room for another Site, or nil if
// none has room. If region is not empty, only databases with that region are considered. If current is
// not nil, the database of that placement is not considered.
func (c *SiteClass) RoomFor(region string, current *Placement, claims []SiteClaim) *PoolDatabase {
	placed, most := c.Placed(claims), int32(0)
	var found *PoolDatabase
	for i := range c.Pool().Databases {
		database := &c.Pool().Databases[i]
		if region != "" && database.Region != region || current != nil && *current == (Placement{c.Name, database.Name}) {
			continue
		}
		if free := database.Free(placed[database.Name]); free > most {
			found, most = database, free
		}
	}
	return found
}
