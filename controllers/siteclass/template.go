package siteclass

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// creationInterval is the interval between checks of the databases of a template while one of them is
	// not ready, or a change of its objects was rejected. It is also the interval between reconciles of a
	// class that has a template and is being deleted.
	creationInterval = 5 * time.Second
	// templateInterval is the interval between checks of the databases of a template while all of them are
	// ready. A check undoes changes that other clients have made to their objects.
	templateInterval = 5 * time.Minute
)

// databaseState is the state of a database of a template.
type databaseState struct {
	phase   v1alpha1.PoolDatabasePhase
	message string
}

// templateStates are the states of the databases of a template that exist, by their number.
type templateStates map[int]databaseState

// checkedTemplate is what the last check of the databases of a template has found.
type checkedTemplate struct {
	at         time.Time
	generation int64
	states     templateStates
}

// interval returns the interval until the next check.
func (c *checkedTemplate) interval() time.Duration {
	for _, state := range c.states {
		if state != (databaseState{phase: v1alpha1.PoolDatabaseReady}) {
			return creationInterval
		}
	}
	return templateInterval
}

// templateDatabases applies the objects of the databases of the class's template and returns their states. It
// creates a further database if Sites need one.
func (r *Reconciler) templateDatabases(ctx context.Context, class *v1alpha1.SiteClass, sites []v1alpha1.Site, claims []v1alpha1.SiteClaim) (templateStates, error) {
	if class.Template() == nil {
		delete(r.checked, class.Name)
		return nil, nil
	}
	placed, checked := class.Placed(claims), r.checked[class.Name]
	if checked == nil || checked.generation != class.Generation || r.Now().Sub(checked.at) >= checked.interval() {
		states, err := r.check(ctx, class, placed)
		if err != nil {
			return nil, err
		}
		checked = &checkedTemplate{at: r.Now(), generation: class.Generation, states: states}
		r.checked[class.Name] = checked
	}
	number := nextDatabase(class, checked.states)
	if number == 0 || !class.DeletionTimestamp.IsZero() {
		return checked.states, nil
	}
	moves := &v1alpha1.SiteMoveList{}
	if err := r.Client.List(ctx, moves); err != nil {
		return nil, fmt.Errorf("list the SiteMoves to the pool: %w", err)
	}
	if !demandOf(class, sites, claims, moves.Items).exceeds(class, checked.states, placed) {
		return checked.states, nil
	}
	// The cache may not have the newest placements.
	demand, placed, err := r.readDemand(ctx, class)
	if err != nil || !demand.exceeds(class, checked.states, placed) {
		return checked.states, err
	}
	state, err := r.create(ctx, class, number)
	if err != nil {
		return nil, err
	}
	checked.states[number] = state
	return checked.states, nil
}

// check applies the objects of all databases of the template that exist, and returns their states.
func (r *Reconciler) check(ctx context.Context, class *v1alpha1.SiteClass, placed map[string]int32) (templateStates, error) {
	states := templateStates{}
	for number := 1; number <= lastNumber(class, placed); number++ {
		state, there, err := r.keep(ctx, class, number, placed[v1alpha1.TemplateDatabase(number)] > 0)
		if err != nil {
			return nil, err
		}
		if there {
			states[number] = state
		}
	}
	return states, nil
}

// lastNumber returns the largest number that a database of the template can have: that of its maximum, or of
// a database that has Sites or was there before.
func lastNumber(class *v1alpha1.SiteClass, placed map[string]int32) int {
	last := int(*class.Template().MaxDatabases) + len(class.Template().Drain)
	for name := range placed {
		if number, ok := v1alpha1.TemplateNumber(name); ok {
			last = max(last, number)
		}
	}
	for _, status := range class.Status.Databases {
		if number, ok := v1alpha1.TemplateNumber(status.Name); ok {
			last = max(last, number)
		}
	}
	return last
}

// nextDatabase returns the number of the database to create next, or 0 if the maximum is reached.
func nextDatabase(class *v1alpha1.SiteClass, states templateStates) int {
	if len(states) >= int(*class.Template().MaxDatabases) {
		return 0
	}
	for number := 1; ; number++ {
		_, there := states[number]
		if !there && !slices.Contains(class.Template().Drain, v1alpha1.TemplateDatabase(number)) {
			return number
		}
	}
}
