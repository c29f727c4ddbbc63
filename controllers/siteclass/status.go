package siteclass

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// statusOf returns the status of a SiteClass, given all Sites and SiteClaims, the messages of databases,
// and the states of the databases of the template.
func statusOf(class *v1alpha1.SiteClass, sites []v1alpha1.Site, claims []v1alpha1.SiteClaim, messages map[string]string, states templateStates) v1alpha1.SiteClassStatus {
	status := v1alpha1.SiteClassStatus{ObservedGeneration: class.Generation}
	for i := range sites {
		if sites[i].Class() == class.Name {
			status.Sites++
		}
	}
	placed := class.Placed(claims)
	if pool := class.Pool(); pool != nil {
		for i := range pool.Databases {
			database := &pool.Databases[i]
			n := placed[database.Name]
			delete(placed, database.Name)
			status.Databases = append(status.Databases, v1alpha1.PoolDatabaseStatus{Name: database.Name, Sites: n, Free: database.Free(n), Message: messages[database.Name]})
		}
	}
	for number, state := range states {
		database := class.Database(v1alpha1.TemplateDatabase(number))
		n := placed[database.Name]
		delete(placed, database.Name)
		shown := v1alpha1.PoolDatabaseStatus{Name: database.Name, Sites: n, Phase: state.phase, Message: cmp.Or(state.message, messages[database.Name])}
		if state.phase == v1alpha1.PoolDatabaseReady {
			shown.Free = database.Free(n)
		}
		status.Databases = append(status.Databases, shown)
	}
	for name, n := range placed { // databases that the pool no longer has
		status.Databases = append(status.Databases, v1alpha1.PoolDatabaseStatus{Name: name, Sites: n})
	}
	slices.SortFunc(status.Databases, func(a, b v1alpha1.PoolDatabaseStatus) int { return strings.Compare(a.Name, b.Name) })
	return status
}

// inUse reports whether a Site uses the class, or a Site is placed in a database of its pool. Databases
// that were removed from the pool count too.
func inUse(status v1alpha1.SiteClassStatus) bool {
	return status.Sites > 0 || slices.ContainsFunc(status.Databases, func(d v1alpha1.PoolDatabaseStatus) bool { return d.Sites > 0 })
}
