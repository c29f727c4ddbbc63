package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// customResource is the ordinary way to have Patients as Kubernetes objects.
const customResource = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: patients.bench.paddock.health}
spec:
  group: bench.paddock.health
  scope: Namespaced
  names: {plural: patients, singular: patient, kind: Patient}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Family, type: string, jsonPath: ".spec.name[0].family"}
    - {name: Birthdate, type: string, jsonPath: .spec.birthDate}
    - {name: Active, type: string, jsonPath: .spec.active}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// recordGroup is the API group and version of the records.
const recordGroup = "r4.fhir.paddock.health/v1alpha1"

// listed is the number of objects that are created, and the size of a page.
const listed = 500

// benchAggregated compares Patients through kube-apiserver's aggregator with custom
// resources of the same content, which kube-apiserver keeps itself.
func benchAggregated(ctx context.Context, o options, in installation) error {
	if err := installCustomResource(ctx, in); err != nil {
		return err
	}
	return withPatients(ctx, in, func(client *http.Client, _ *localpostgres.Server) error { return compareObjects(ctx, o, in, client) })
}

// withPatients makes the site in Postgres, in addition to the demo site, and calls bench with a client
// of kube-apiserver and the Postgres server, which it stops afterwards.
func withPatients(ctx context.Context, in installation, bench func(*http.Client, *localpostgres.Server) error) error {
	dir, err := os.MkdirTemp("", "paddock-bench-postgres")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := startDatabase(ctx, in, dir)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	client, err := rest.HTTPClientFor(in.cluster.Config())
	if err != nil {
		return err
	}
	return bench(client, server)
}

func compareObjects(ctx context.Context, o options, in installation, client *http.Client) error {
	kinds := []struct {
		name    string
		objects objects
	}{
		{"custom resource", objects{client, in.cluster.Config().Host, "bench.paddock.health/v1alpha1", "demo"}},
		{"Patient, etcd", objects{client, in.cluster.Config().Host, recordGroup, "demo"}},
		{"Patient, Postgres", objects{client, in.cluster.Config().Host, recordGroup, databaseSite}},
	}
	var workloads []workload
	var ratios []ratio
	for i, kind := range kinds {
		for n := range listed {
			if err := kind.objects.create(ctx, n); err != nil {
				return err
			}
		}
		for _, w := range kind.objects.workloads() {
			of := w.name + ": " + kind.name
			workloads = append(workloads, workload{of, w.run})
			if i > 0 {
				ratios = append(ratios, ratio{of + " per custom resource", of, w.name + ": " + kinds[0].name, 0})
			}
		}
	}
	return report(os.Stdout, o, measure(ctx, o, workloads), ratios)
}

func installCustomResource(ctx context.Context, in installation) error {
	file := in.cluster.File("bench.yaml")
	if err := os.WriteFile(file, []byte(customResource), 0o600); err != nil {
		return err
	}
	if _, err := in.paddock.Kubectl(ctx, "apply", "-f", file); err != nil {
		return err
	}
	var last error // the kind is not served before it is established
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = in.paddock.Kubectl(ctx, "get", "patients.bench.paddock.health")
		return last == nil, nil
	})
	return errors.Join(err, last)
}

// objects are Patients of a namespace, as kube-apiserver shows them to a client.
type objects struct {
	client                         *http.Client
	host, groupVersion, namespaced string
}

func (o objects) workloads() []workload {
	return []workload{
		{"get", func(ctx context.Context, n int) error {
			return o.send(ctx, http.MethodGet, fmt.Sprintf("/bench-%d", n%listed), "application/json", nil, http.StatusOK)
		}},
		{"list of 500", func(ctx context.Context, _ int) error {
			return o.send(ctx, http.MethodGet, "?limit=500", "application/json", nil, http.StatusOK)
		}},
		{"table of 500", func(ctx context.Context, _ int) error {
			return o.send(ctx, http.MethodGet, "?limit=500", "application/json;as=Table;v=v1;g=meta.k8s.io", nil, http.StatusOK)
		}},
	}
}

func (o objects) create(ctx context.Context, n int) error {
	spec := bytes.Replace(body(n), []byte(`"resourceType":"Patient",`), nil, 1)
	object := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Patient","metadata":{"name":"bench-%d"},"spec":%s}`, o.groupVersion, n, spec)
	return o.send(ctx, http.MethodPost, "", "application/json", object, http.StatusCreated)
}

func (o objects) send(ctx context.Context, method, path, accept string, object []byte, want int) error {
	answer, err := o.ask(ctx, method, path, accept, object, want)
	if err == nil && method == http.MethodGet && strings.Contains(path, "limit") && bytes.Count(answer, []byte(`"name":"bench-`)) != listed {
		err = fmt.Errorf("GET %s of %s: the response does not have %d objects named bench-*", path, o.groupVersion, listed)
	}
	return err
}

// ask sends a request and returns the body of the response. It fails unless the status is want.
func (o objects) ask(ctx context.Context, method, path, accept string, object []byte, want int) ([]byte, error) {
	url := o.host + "/apis/" + o.groupVersion + "/namespaces/" + o.namespaced + "/patients" + path
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/json")
	response, err := o.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, url, response.Status, answer)
	}
	return answer, err
}
