// Package certificate keeps the certificate of the API servers: an authority of its own, what
// they serve with, and what kube-apiserver trusts when it forwards requests. All three are
// replaced in time, each while the one before is still good. See docs/decisions/0008.
package certificate

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// bundleKey holds, in the Secret of the API servers, what their clients are to trust.
	bundleKey = "ca.crt"
	// previousKey holds, in the Secret of the authority, the certificate of the one before.
	previousKey = "previous.crt"
)

// interval is the pause between two passes: how long a Secret that was deleted is missing.
const interval = time.Minute

// Keeper keeps two Secrets and an APIService. It is a Runnable of a manager; only the leader's
// works.
type Keeper struct {
	// Client writes.
	Client client.Client
	// Live reads past the cache, which has no Secrets of these types.
	Live client.Reader
	// Namespace is that of the Secrets.
	Namespace string
	// Secret is the API servers': tls.crt, tls.key and ca.crt. Authority is the controller's own.
	Secret, Authority string
	// DNSNames are those that the API servers are reached by.
	DNSNames []string
	// APIService is told what to trust, where there is one of that name.
	APIService string
	// Now is the clock.
	Now func() time.Time
}

// AddToScheme registers the kinds that a Keeper reads.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, apiregistrationv1.AddToScheme)
	return builder.AddToScheme(scheme)
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;create;patch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.r4.fhir.paddock.health,verbs=get;patch

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "keep the certificate of the API servers", "secret", k.Secret)
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
	serving, err := k.read(ctx, k.Secret)
	if err != nil {
		return err
	}
	next, err := rotate(state{
		authority: pairOf(authority), previous: authority.Data[previousKey], serving: pairOf(serving),
	}, k.DNSNames, k.Now())
	if err != nil {
		return err
	}
	bundle := next.bundle()
	if err := k.write(ctx, authority, map[string][]byte{
		certificateKey: next.authority.certificate, privateKeyKey: next.authority.key, previousKey: next.previous,
	}); err != nil {
		return err
	}
	if err := k.makeKnown(ctx, bundle); err != nil {
		return err
	}
	return k.write(ctx, serving, map[string][]byte{
		certificateKey: next.serving.certificate, privateKeyKey: next.serving.key, bundleKey: bundle,
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

// makeKnown tells kube-apiserver what to trust.
func (k *Keeper) makeKnown(ctx context.Context, bundle []byte) error {
	service := &apiregistrationv1.APIService{}
	switch err := k.Live.Get(ctx, client.ObjectKey{Name: k.APIService}, service); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read APIService %s: %w", k.APIService, err)
	case string(service.Spec.CABundle) == string(bundle):
		return nil
	}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)}}}
	config.SetGroupVersionKind(apiregistrationv1.SchemeGroupVersion.WithKind("APIService"))
	config.SetName(k.APIService)
	config.SetUID(service.UID)
	if err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), apply.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write APIService %s: %w", k.APIService, err)
	}
	return nil
}
