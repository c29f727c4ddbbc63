package v1alpha1

import (
	"slices"
	"strconv"
	"strings"
)

// templatePrefix begins the names of the databases of a template, before their number.
const templatePrefix = "auto-"

// TemplateDatabase returns the name of a database that the controller creates from the template of a
// pool. The first one has the number 1.
func TemplateDatabase(number int) string { return templatePrefix + strconv.Itoa(number) }

// TemplateNumber returns the number for which TemplateDatabase returns the name. ok is false if there is
// none.
func TemplateNumber(name string) (number int, ok bool) {
	digits, ok := strings.CutPrefix(name, templatePrefix)
	number, err := strconv.Atoi(digits)
	return number, ok && err == nil && number > 0 && TemplateDatabase(number) == name
}

// Template returns the template of the class's pool, or nil if there is none.
func (c *SiteClass) Template() *PoolTemplate {
	if pool := c.Pool(); pool != nil {
		return pool.Template
	}
	return nil
}

// templateDatabase returns the database of the template with a name, or nil if it is not such a name or
// there is no template. It has no secretRef.
func (c *SiteClass) templateDatabase(name string) *PoolDatabase {
	template := c.Template()
	if _, ok := TemplateNumber(name); !ok || template == nil {
		return nil
	}
	return &PoolDatabase{Name: name, Capacity: template.Capacity, Region: template.Region, Drain: slices.Contains(template.Drain, name)}
}

// usable returns the databases of the pool on which Sites can be placed: those that are listed, and those of
// the template that are ready. Those of the template may be deleted with the class.
func (c *SiteClass) usable() []*PoolDatabase {
	var usable []*PoolDatabase
	for i := range c.Pool().Databases {
		usable = append(usable, &c.Pool().Databases[i])
	}
	for _, status := range c.Status.Databases {
		if database := c.templateDatabase(status.Name); database != nil && status.Phase == PoolDatabaseReady && c.DeletionTimestamp.IsZero() {
			usable = append(usable, database)
		}
	}
	return usable
}

// CanGrow reports whether a Site without room can expect a database of the template: one that is not
// ready has room, or a further one can be created. If region is not empty, it must be that of the
// template.
func (c *SiteClass) CanGrow(region string) bool {
	template := c.Template()
	if template == nil || region != "" && template.Region != region || !c.DeletionTimestamp.IsZero() {
		return false
	}
	existing := int32(0)
	for _, status := range c.Status.Databases {
		database := c.templateDatabase(status.Name)
		switch {
		case database == nil:
		case status.Phase != PoolDatabaseReady && database.Free(status.Sites) > 0:
			return true
		default:
			existing++
		}
	}
	return template.MaxDatabases != nil && existing < *template.MaxDatabases
}

// Database returns the database with the given name in the class's pool, or nil if there is none. A
// database of the template is returned whether or not it exists.
func (c *SiteClass) Database(name string) *PoolDatabase {
	if pool := c.Pool(); pool != nil {
		for i := range pool.Databases {
			if pool.Databases[i].Name == name {
				return &pool.Databases[i]
			}
		}
	}
	return c.templateDatabase(name)
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
// none has room. Of the databases of the template, those that are ready by the status of the class are
// considered. If region is not empty, only databases with that region are considered. If current is
// not nil, the database of that placement is not considered. The class must have a pool.
func (c *SiteClass) RoomFor(region string, current *Placement, claims []SiteClaim) *PoolDatabase {
	placed, most := c.Placed(claims), int32(0)
	var found *PoolDatabase
	for _, database := range c.usable() {
		if region != "" && database.Region != region || current != nil && *current == (Placement{c.Name, database.Name}) {
			continue
		}
		if free := database.Free(placed[database.Name]); free > most {
			found, most = database, free
		}
	}
	return found
}
