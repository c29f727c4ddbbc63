package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// fleetPortions is the number of portions in which the Sites are created, so that the figures show
	// whether the rate falls with the number of Sites.
	fleetPortions = 4
	// fleetCreators is how many Sites are created or filled concurrently.
	fleetCreators = 8
	// fleetPoll is the interval between counts of Sites that are Ready. A count lists all Sites.
	fleetPoll = time.Second
	// fleetRecords is the number of Patients that each Site is filled with.
	fleetRecords = 20
)

// fleetManifest is a caller whose namespace has rights in all Sites, and the default SiteClass. Its
// parameters are the limits of Sites and the list of databases, as JSON.
const fleetManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: fleet}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: fleet}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fleet}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:fleet"}]
---
apiVersion: paddock.health/v1alpha1
kind: SiteClass
metadata:
  name: fleet
  annotations: {paddock.health/is-default-class: "true"}
spec: {%s,"storage":{"type":"Postgres","postgres":{"pool":{"databases":[%s]}}}}
`

// poolDatabase returns the name of the n-th database in the pool. The database on the server and its
// Secret have this name. The last database is drained.
func poolDatabase(n int) string { return fmt.Sprintf("pool-%d", n+1) }

// capacities returns the capacity of each database, in Sites. That of the last database is o.drained.
// The other databases together have room for all Sites.
func (f *fleet) capacities() []int {
	others := fleetDatabases - 1
	capacities := slices.Repeat([]int{(f.options.sites + others - 1) / others}, others)
	return append(capacities, f.options.drained)
}

func (f *fleet) manifest() []byte {
	var databases []string
	for n, capacity := range f.capacities() {
		databases = append(databases, fmt.Sprintf(`{"name":%[1]q,"secretRef":{"name":%[1]q},"capacity":%[2]d}`, poolDatabase(n), capacity))
	}
	return fmt.Appendf(nil, fleetManifest, unlimited, strings.Join(databases, ","))
}

// clinic is one Site of the fleet.
type clinic struct {
	name string
	// doors is the Site as each API server serves it. Each has the ids of the records that were created
	// through it.
	doors []*site
}

// anyDoor returns the Site as one of the API servers serves it.
func (c clinic) anyDoor() *site { return c.doors[rand.IntN(len(c.doors))] }

// anyClinic returns a random Site.
func (f *fleet) anyClinic() clinic { return f.clinics[rand.IntN(len(f.clinics))] }

// createSites creates the Sites, each in a namespace of its own, and reports how many per second became
// Ready, and how many each database has.
func (f *fleet) createSites(ctx context.Context) error {
	fmt.Print("\n| Sites | added | until all are Ready | Ready per second |\n|---|---|---|---|\n")
	created := 0
	for portion := range fleetPortions {
		until := f.options.sites * (portion + 1) / fleetPortions
		began, added := time.Now(), until-created
		group, creating := errgroup.WithContext(ctx)
		group.SetLimit(fleetCreators)
		for ; created < until; created++ {
			name := fmt.Sprintf("clinic-%04d", created)
			f.clinics = append(f.clinics, clinic{name: name})
			group.Go(func() error { return addSite(creating, f.objects, name) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := awaitReady(ctx, f.objects, until+1, fleetPoll); err != nil { // one more, because of the Site demo
			return err
		}
		took := time.Since(began)
		fmt.Printf("| %d | %d | %.1f s | %.1f |\n", until, added, took.Seconds(), float64(added)/took.Seconds())
		if _, err := f.placed(ctx); err != nil {
			return err
		}
	}
	placed, err := f.placed(ctx)
	if err != nil {
		return err
	}
	fmt.Print("\n| database | capacity | Sites |\n|---|---|---|\n")
	for n, capacity := range f.capacities() {
		fmt.Printf("| %s | %d | %d |\n", poolDatabase(n), capacity, placed[poolDatabase(n)])
	}
	return nil
}

// placed returns the number of Sites in each database, by the SiteClaims. It fails if a database
// has more Sites than its capacity, or a Site has no database.
func (f *fleet) placed(ctx context.Context) (map[string]int32, error) {
	class, claims := &v1alpha1.SiteClass{}, &v1alpha1.SiteClaimList{}
	if err := f.objects.Get(ctx, client.ObjectKey{Name: fleetClass}, class); err != nil {
		return nil, err
	}
	if err := f.objects.List(ctx, claims); err != nil {
		return nil, err
	}
	placed, total := class.Placed(claims.Items), 0
	for n, capacity := range f.capacities() {
		if sites := int(placed[poolDatabase(n)]); sites > capacity {
			return nil, fmt.Errorf("%s has %d Sites and capacity for %d", poolDatabase(n), sites, capacity)
		}
	}
	for sites := range maps.Values(placed) {
		total += int(sites)
	}
	if total < len(f.clinics) {
		return nil, fmt.Errorf("the databases have %d Sites, want at least %d", total, len(f.clinics))
	}
	return placed, nil
}

// fill makes tokens for all Sites, and creates records in each.
func (f *fleet) fill(ctx context.Context) error {
	shared := newSite("", "").client
	began := time.Now()
	group, filling := errgroup.WithContext(ctx)
	group.SetLimit(fleetCreators)
	for i := range f.clinics {
		c := &f.clinics[i]
		group.Go(func() error {
			token, err := f.in.paddock.Token(filling, fleetClass, "editor", "paddock.health/"+c.name+"/"+c.name, 4*time.Hour)
			if err != nil {
				return err
			}
			for _, url := range f.in.paddock.URLs {
				c.doors = append(c.doors, &site{base: url + "/site/" + c.name + "/fhir", token: token, client: shared})
			}
			for n := range fleetRecords {
				if err := c.doors[n%len(c.doors)].create(filling, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	fmt.Fprintf(os.Stderr, "%d Sites filled with %d records each in %s\n", len(f.clinics), fleetRecords, time.Since(began).Round(time.Second))
	return err
}

// createCallers creates as many callers as there are Sites. It returns a client of the Site c for each
// caller, which reads the records that c has.
func (f *fleet) createCallers(ctx context.Context, c clinic) ([]*site, error) {
	callers := make([]*site, len(f.clinics))
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(fleetCreators)
	for n := range callers {
		group.Go(func() error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleetClass, Name: fmt.Sprintf("caller-%04d", n)}}
			if err := f.objects.Create(creating, account); err != nil {
				return err
			}
			token, err := f.in.paddock.Token(creating, fleetClass, account.Name, "paddock.health/"+c.name+"/"+c.name, 4*time.Hour)
			door := c.doors[n%len(c.doors)]
			callers[n] = &site{base: door.base, token: token, client: door.client, ids: slices.Clone(door.ids)}
			return err
		})
	}
	return callers, group.Wait()
}

// expectRecords fails unless each Site has the first record that was created through each API server.
// It reads each record through another API server.
func (f *fleet) expectRecords(ctx context.Context) error {
	for _, c := range f.clinics {
		for i, door := range c.doors {
			other := c.doors[(i+1)%len(c.doors)]
			if err := door.do(ctx, http.MethodGet, "/patient/"+other.id(0), nil, http.StatusOK); err != nil {
				return err
			}
		}
	}
	return nil
}
