// Package certificate issues and renews the certificates of Paddock's programs: a certificate
// authority, serving certificates, and the CA bundles in the objects by which kube-apiserver calls
// the programs. A certificate is replaced while the previous one is still valid. See docs/decisions/0008.
package certificate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/controllers/apply"
)

// The keys in the data of the Secrets, named as in Secrets of type kubernetes.io/tls.
const (
	certificateKey = corev1.TLSCertKey
	privateKeyKey  = corev1.TLSPrivateKeyKey
	// bundleKey is the key of the CA bundle for clients, in the Secret of a server.
	bundleKey = "ca.crt"
	// previousKey is the key of the previous authority's certificate, in the Secret of the authority.
	previousKey = "previous.crt"
)

// interval is the interval between calls of Keep. A deleted Secret is created again within it.
const interval = time.Minute

// Keeper maintains the Secrets of a certificate authority and of the servers whose certificates it
// signs, and the CA bundles for kube-apiserver. A Keeper is a Runnable of a manager and runs only
// in the leader.
type Keeper struct {
	// Client writes to kube-apiserver.
	Client client.Client
	// Live reads from kube-apiserver, because the cache of the manager does not hold these Secrets.
	Live client.Reader
	// Namespace is the namespace of the Secrets.
	Namespace string
	// Authority is the name of the Secret of the certificate authority. Only the controller uses this
	// Secret.
	Authority string
	// Serving are the certificates that the authority signs.
	Serving []Serving
	// Now is the clock.
	Now func() time.Time
}

// Serving is the certificate of a server.
type Serving struct {
	// Secret is the name of the server's Secret, with tls.crt, tls.key and ca.crt.
	Secret string
	// DNSNames are the DNS names of the server.
	DNSNames []string
	// APIService is the name of an APIService whose caBundle the Keeper sets, if the object exists. If
	// empty, the Keeper sets none.
	APIService string
	// ValidatingWebhooks is the name of a ValidatingWebhookConfiguration whose caBundle the Keeper
	// sets, if the object exists. If empty, the Keeper sets none.
	ValidatingWebhooks string
}

// AddToScheme registers the kinds that a Keeper reads.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, apiregistrationv1.AddToScheme, admissionregistrationv1.AddToScheme)
	return builder.AddToScheme(scheme)
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;create;patch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.r4.fhir.paddock.health,verbs=get;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=paddock-controller,verbs=get;patch

// Start implements manager.Runnable. It calls Keep once per interval until ctx is done, and logs
// errors.
func (k *Keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "cannot maintain the certificates; the controller will retry", "authority", k.Authority)
		}
	}, interval)
	return nil
}

// Keep issues the certificates that are missing or due, and writes the Secrets and CA bundles that
// have changed. A new authority is stored and added to the CA bundles before a certificate signed
// by it is served.
func (k *Keeper) Keep(ctx context.Context) error {
	authority, err := k.read(ctx, k.Authority)
	if err != nil {
		return err
	}
	next := state{authority: pairOf(authority), previous: authority.Data[previousKey]}
	secrets, pairs := make([]*corev1.Secret, len(k.Serving)), make([]keyPair, len(k.Serving))
	for i, serving := range k.Serving {
		if secrets[i], err = k.read(ctx, serving.Secret); err != nil {
			return err
		}
		// The first iteration replaces the authority if it is due. It is not due in later iterations.
		next.serving = pairOf(secrets[i])
		if next, err = rotate(next, serving.DNSNames, k.Now()); err != nil {
			return err
		}
		pairs[i] = next.serving
	}
	bundle := next.bundle()
	if err := k.write(ctx, authority, map[string][]byte{
		certificateKey: next.authority.certificate, privateKeyKey: next.authority.key, previousKey: next.previous,
	}); err != nil {
		return err
	}
	var errs []error // after an error of one server, the Secrets of other servers are still written
	for i, serving := range k.Serving {
		errs = append(errs, k.keepServing(ctx, serving, secrets[i], pairs[i], bundle))
	}
	return errors.Join(errs...)
}

func (k *Keeper) keepServing(ctx context.Context, serving Serving, secret *corev1.Secret, pair keyPair, bundle []byte) error {
	if err := k.register(ctx, serving, bundle); err != nil { // register.go
		return err
	}
	return k.write(ctx, secret, map[string][]byte{
		certificateKey: pair.certificate, privateKeyKey: pair.key, bundleKey: bundle,
	})
}

func pairOf(secret *corev1.Secret) keyPair {
	return keyPair{secret.Data[certificateKey], secret.Data[privateKeyKey]}
}

// read returns a Secret, or an empty one if it does not exist.
func (k *Keeper) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	secret.Namespace, secret.Name = k.Namespace, name
	return secret, nil
}

// write writes the data of a Secret, unless the data is unchanged. It fails with a conflict if the Secret
// has changed since it was read.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return value == nil })
	if maps.EqualFunc(secret.Data, data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	config := corev1ac.Secret(secret.Name, secret.Namespace).WithData(data)
	if secret.ResourceVersion != "" {
		config = config.WithResourceVersion(secret.ResourceVersion).WithUID(secret.UID)
	}
	if err := k.Client.Apply(ctx, config, apply.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	return nil
}
