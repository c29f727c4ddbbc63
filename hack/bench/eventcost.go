package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

// neighbourSite is a second site in the database of databaseSite.
const neighbourSite = "neighbour"

const neighbourManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec: {storage: {type: Postgres, postgres: {external: {secretRef: {name: demo-db}}}}, %[2]s}
`

// openNeighbour makes neighbourSite. startDatabase must have been called.
func openNeighbour(ctx context.Context, in installation, uri string) error {
	path := in.cluster.File("neighbour.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, neighbourManifest, neighbourSite, unlimited), 0o600); err != nil {
		return err
	}
	if _, err := in.paddock.Kubectl(ctx, "apply", "--filename", path); err != nil {
		return err
	}
	if err := in.paddock.SetSecret(ctx, neighbourSite, "demo-db", "paddock.health/dsn", map[string]string{"uri": uri}); err != nil {
		return err
	}
	_, err := in.paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", neighbourSite, "site/"+neighbourSite)
	return err
}

// eventCostGoal is the maximum ratio of the processor time of a create with an event to that of a
// create without.
const eventCostGoal = 1.15

// benchEventCost compares creates of Practitioners that make an event for one webhook with creates
// that make none, in two sites of one database. The delivery process is paused during the measurement.
func benchEventCost(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-events")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := startDatabase(ctx, in, filepath.Join(dir, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if err := openNeighbour(ctx, in, server.URL("demo")); err != nil {
		return err
	}
	receiver := localreceiver.Start()
	defer receiver.Close()
	with := &deliveriesBench{in: in, namespace: databaseSite}
	if err := with.openFan(ctx, &fan{eventType: "user.created", size: 1}); err != nil {
		return err
	}
	var workloads []workload
	for _, of := range []struct{ name, namespace string }{{withEvent, databaseSite}, {withoutEvent, neighbourSite}} {
		namespace := of.namespace
		token, err := in.paddock.Token(ctx, namespace, "editor", "paddock.health/"+namespace+"/"+namespace, 2*time.Hour)
		if err != nil {
			return err
		}
		s := newSite(in.paddock.URLs[0]+"/site/"+namespace+"/fhir", token)
		workloads = append(workloads, workload{of.name, func(ctx context.Context, n int) error {
			return s.do(ctx, http.MethodPost, "/practitioner", practitioner(n), http.StatusCreated)
		}})
	}
	if err := in.paddock.Deliveries[0].Pause(); err != nil {
		return err
	}
	o.processes = &processes{servers: []int{in.paddock.APIServers[0].Pid()}, database: server.Pid()}
	results := measure(ctx, o, workloads)
	if err := report(os.Stdout, o, results, []ratio{{"creates with an event per create without", withEvent, withoutEvent, 0}}); err != nil {
		return err
	}
	tellEventCost(os.Stdout, results)
	if err := requireEvents(ctx, server.URL("demo")); err != nil {
		return err
	}
	return in.paddock.Deliveries[0].Resume()
}

// requireEvents fails if the outbox is empty: then the creates made no events.
func requireEvents(ctx context.Context, uri string) error {
	conn, err := pgx.Connect(ctx, uri)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var some bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox)`).Scan(&some); err != nil {
		return err
	}
	if !some {
		return errors.New("the creates made no events")
	}
	return nil
}

const (
	withEvent    = "create: Practitioner with an event"
	withoutEvent = "create: Practitioner without an event"
)

// tellEventCost prints the ratio of the processor time of server and database: the median and the
// range over the rounds.
func tellEventCost(out io.Writer, results map[string]*result) {
	var ratios []float64
	spent := func(t turn) float64 { return float64(t.took.server + t.took.database) }
	for i, t := range results[withEvent].turns {
		ratios = append(ratios, spent(t)/spent(results[withoutEvent].turns[i]))
	}
	slices.Sort(ratios)
	fmt.Fprintf(out, "\nprocessor time of server and database for a create with an event, per create without: %.2f (%.2f–%.2f), goal %.2f\n\n",
		ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], eventCostGoal)
}

// practitioner is a Practitioner of about 700 bytes.
func practitioner(n int) []byte {
	return fmt.Appendf(nil, `{"resourceType":"Practitioner","active":true,`+
		`"identifier":[{"use":"official","system":"https://clinic.example.org/staff","value":"S-%07d"},{"system":"urn:oid:1.2.36.146.595.217.0.2","value":"7714%011d"}],`+
		`"name":[{"use":"official","family":"Okafor","given":["Ada"],"prefix":["Dr"]}],"gender":"female","birthDate":"1984-11-20",`+
		`"telecom":[{"system":"phone","value":"+61 3 5550 %04d","use":"work"},{"system":"email","value":"ada.okafor.%d@clinic.example.org","use":"work"}],`+
		`"qualification":[{"code":{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/v2-0360","code":"MD","display":"Doctor of Medicine"}]}}],`+
		`"address":[{"use":"work","line":["12 Paddock Lane"],"city":"Ballarat","postalCode":"3350","country":"AU"}]}`, n, n, n%10000, n)
}
