// Package certificate keeps the certificates of Paddock's programs: an authority of its own, what
// they serve with, and what kube-apiserver trusts when it calls them. All of it is replaced in
// time, each while the one before is still good. See docs/decisions/0008.
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

// The keys of the Secrets, as in those of type kubernetes.io/tls.
const (
	certificateKey = corev1.TLSCertKey
	privateKeyKey  = corev1.TLSPrivateKeyKey
	// bundleKey holds, in the Secret of a server, what its clients are to trust.
	bundleKey = "ca.crt"
	// previousKey holds, in the Secret of the authority, the certificate of the one before.
	previousKey = "previous.crt"
)

// interval is the pause between two passes: how long a Secret that was deleted is missing.
const interval = time.Minute

// Keeper keeps the Secret of an authority and those of the servers that it signs for, and tells
// kube-apiserver. It is a Runnable of a manager; only the leader's works.
type Keeper struct {
	// Client writes.
	Client client.Client
	// Live reads past the cache, which has no Secrets of these types.
	Live client.Reader
	// Namespace is that of the Secrets.
	Namespace string
	// Authority is the Secret of the authority, the controller's own.
	Authority string
	// Serving are the certificates that the authority signs.
	Serving []Serving
	// Now is the clock.
	Now func() time.Time
}

// Serving is a certificate of servers.
type Serving struct {
	// Secret is the servers': tls.crt, tls.key and ca.crt.
	Secret string
	// DNSNames are those that the servers are reached by.
	DNSNames []string
	// APIService and ValidatingWebhooks, where they are given and there is one of that name,
	// are told what to trust.
	APIService, ValidatingWebhooks string
}

// AddToScheme registers the kinds that a Keeper reads.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, apiregistrationv1.AddToScheme, admissionregistrationv1.AddToScheme)
	return builder.AddToScheme(scheme)
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;create;patch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.r4.fhir.paddock.health,verbs=get;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=paddock-controller,verbs=get;patch

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "keep the certificates", "authority", k.Authority)
		}
	}, interval)
	return nil
}

// Keep makes one pass. An authority is kept and made known before anything is signed with it
// that others see.
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
		// The first pass replaces the authority, if that is due; for the others it is new then.
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
	var errs []error // what one of them lacks is no reason to let the others wait
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

// read reads a Secret: an empty one where there is none.
func (k *Keeper) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	secret.Namespace, secret.Name = k.Namespace, name
	return secret, nil
}

// write brings a Secret to the data wanted, unless it has it.
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
