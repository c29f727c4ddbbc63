package localpaddock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	// discoveryTimeout limits the wait until kube-apiserver has found the aggregated API.
	// discoveryInterval is the pause between two checks.
	discoveryInterval = 50 * time.Millisecond
	discoveryTimeout  = 30 * time.Second
)

// aggregation is the aggregated API of the first API server.
type aggregation struct {
	port       int
	apiService apiregistrationv1.APIService
	// certFile holds the self-signed certificate.
	certFile, keyFile string
}

// newAggregation reads the APIService of config/aggregation and makes a
// certificate for the Service in it.
func (p *Paddock) newAggregation(port int) (*aggregation, error) {
	a := &aggregation{port: port, certFile: p.cluster.File("aggregated.crt"), keyFile: p.cluster.File("aggregated.key")}
	manifest, err := os.ReadFile(filepath.Join(p.options.SourceDir, "config", "aggregation", "apiservice.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(manifest, &a.apiService); err != nil {
		return nil, fmt.Errorf("read config/aggregation/apiservice.yaml: %w", err)
	}
	service := a.apiService.Spec.Service
	certificate, key, err := cert.GenerateSelfSignedCertKey(service.Name+"."+service.Namespace+".svc", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate of the aggregated API: %w", err)
	}
	a.apiService.Spec.CABundle = certificate
	a.apiService.Spec.Service.Port = ptr.To(int32(port))
	return a, errors.Join(os.WriteFile(a.certFile, certificate, 0o600), os.WriteFile(a.keyFile, key, 0o600))
}

// args returns the flags that make an API server serve the aggregated API.
func (a *aggregation) args() []string {
	return []string{
		"--serve", "facade,aggregated",
		"--aggregated-address", "127.0.0.1:" + strconv.Itoa(a.port),
		"--aggregated-tls-cert-file", a.certFile,
		"--aggregated-tls-key-file", a.keyFile,
	}
}

// register makes kube-apiserver forward requests to the aggregated API, and returns when the discovery
// of kube-apiserver has its kinds. The Service leads to this machine instead of to pods.
func (a *aggregation) register(ctx context.Context, p *Paddock) error {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.apiService.Spec.Service.Namespace, Name: a.apiService.Spec.Service.Name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	var manifests bytes.Buffer
	for _, object := range []any{service, &a.apiService} {
		manifest, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write the manifests of the aggregated API: %w", err)
		}
		fmt.Fprintf(&manifests, "---\n%s", manifest)
	}
	file := p.cluster.File("aggregation.yaml")
	if err := os.WriteFile(file, manifests.Bytes(), 0o600); err != nil {
		return err
	}
	if _, err := p.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--filename", file); err != nil {
		return err
	}
	return a.awaitDiscovery(ctx, p)
}

func (a *aggregation) awaitDiscovery(ctx context.Context, p *Paddock) error {
	client, err := discovery.NewDiscoveryClientForConfig(p.cluster.Config())
	if err != nil {
		return fmt.Errorf("create a client of kube-apiserver: %w", err)
	}
	wanted := schema.GroupVersion{Group: a.apiService.Spec.Group, Version: a.apiService.Spec.Version}
	var last error
	err = wait.PollUntilContextTimeout(ctx, discoveryInterval, discoveryTimeout, true, func(context.Context) (bool, error) {
		_, found, failed, err := client.GroupsAndMaybeResources()
		last = errors.Join(err, failed[wanted])
		return last == nil && found[wanted] != nil && len(found[wanted].APIResources) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for kube-apiserver to find the aggregated API: %w", errors.Join(err, last))
	}
	return nil
}
