package site

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/apply"
)

// connectionOf reads the connection from the Secret that the Site names. If the verdict is not nil,
// it says why there is no connection.
func (r *Reconciler) connectionOf(ctx context.Context, site *v1alpha1.Site) (dsn.Connection, *verdict, error) {
	ref := site.Spec.Storage.Postgres.External.SecretRef
	secret, err := find[corev1.Secret](ctx, r.siteSecrets(), client.ObjectKey{Namespace: site.Namespace, Name: ref.Name})
	if apierrors.IsForbidden(err) {
		return dsn.Connection{}, secretsForbidden(site.Namespace, r.Namespace), nil
	}
	if err != nil {
		return dsn.Connection{}, nil, err
	}
	if bad := noSecret(site, secret); bad != nil {
		return dsn.Connection{}, bad, nil
	}
	return parseConnection(secret, ref.Key)
}

func parseConnection(secret *corev1.Secret, key string) (dsn.Connection, *verdict, error) {
	connection, err := dsn.Parse(secret.Data, key)
	bad, err := invalidSecret(secret.Name, err)
	return connection, bad, err
}

// noSecret returns a verdict if found is nil or has another type than SecretTypeDSN. A Site must
// not give access to Secrets of other types.
func noSecret(site *v1alpha1.Site, found *corev1.Secret) *verdict {
	if found != nil && found.Type == v1alpha1.SecretTypeDSN {
		return nil
	}
	return missingSecret(site, "correct spec.storage.postgres.external.secretRef")
}

// missingSecret returns the verdict that the Secret of the Site's database does not exist. instead is
// what can be done other than to create it.
func missingSecret(site *v1alpha1.Site, instead string) *verdict {
	return &verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, fmt.Sprintf("There is no Secret %q of type %s in namespace %q. Create it, or %s.",
		site.Spec.Storage.Postgres.External.SecretRef.Name, v1alpha1.SecretTypeDSN, site.Namespace, instead)}
}

// invalidSecret converts a *dsn.FieldError to a verdict about the Secret, and returns any other
// error unchanged.
func invalidSecret(name string, err error) (*verdict, error) {
	var field *dsn.FieldError
	if errors.As(err, &field) {
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalidSecret, fmt.Sprintf("Secret %q cannot be used: %s", name, field)}, nil
	}
	return nil, err
}

func (r *Reconciler) connectionName(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.ConnectionsNamespace, Name: v1alpha1.ConnectionName(namespace)}
}

// publishConnection writes the connection to the Site's Secret in the connections namespace, from which
// the API servers read it. It does nothing if the Secret has this connection.
func (r *Reconciler) publishConnection(ctx context.Context, site *v1alpha1.Site, siteKey string, connection dsn.Connection) error {
	return r.publishAs(ctx, v1alpha1.ConnectionName(site.Namespace), site, siteKey, connection)
}

// publishAs writes the connection to the Secret secretName in the connections namespace, with the site
// key and the name of the Site. It does nothing if the Secret is unchanged.
func (r *Reconciler) publishAs(ctx context.Context, secretName string, site *v1alpha1.Site, siteKey string, connection dsn.Connection) error {
	name := client.ObjectKey{Namespace: r.ConnectionsNamespace, Name: secretName}
	labels := map[string]string{v1alpha1.SiteKeyLabel: siteKey}
	annotations := map[string]string{v1alpha1.SiteAnnotation: client.ObjectKeyFromObject(site).String()}
	data := connection.Data(v1alpha1.DSNKey)
	current, err := find[corev1.Secret](ctx, r.Client, name)
	if err != nil {
		return err
	}
	if current != nil && equality.Semantic.DeepEqual(current.Data, data) &&
		current.Labels[v1alpha1.SiteKeyLabel] == siteKey && current.Annotations[v1alpha1.SiteAnnotation] == annotations[v1alpha1.SiteAnnotation] {
		return nil
	}
	config := corev1ac.Secret(name.Name, name.Namespace).
		WithType(v1alpha1.SecretTypeDSN).WithLabels(labels).WithAnnotations(annotations).WithData(data)
	if err := r.Client.Apply(ctx, config, apply.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Secret %s: %w", name, err)
	}
	return nil
}

// publishedConnection returns the connection that is published for the Site of a namespace. The bool
// is false if there is none, or if it is for another site key.
func (r *Reconciler) publishedConnection(ctx context.Context, namespace, siteKey string) (dsn.Connection, bool, error) {
	secret, err := find[corev1.Secret](ctx, r.Client, r.connectionName(namespace))
	if err != nil || secret == nil || secret.Labels[v1alpha1.SiteKeyLabel] != siteKey {
		return dsn.Connection{}, false, err
	}
	connection, err := dsn.Parse(secret.Data, v1alpha1.DSNKey)
	return connection, err == nil, err
}

// withdrawConnection deletes the published connection of a deleted Site, unless another Site of the
// namespace has published its own.
func (r *Reconciler) withdrawConnection(ctx context.Context, site types.NamespacedName) error {
	secret, err := find[corev1.Secret](ctx, r.Client, r.connectionName(site.Namespace))
	if err != nil || secret == nil || secret.Annotations[v1alpha1.SiteAnnotation] != site.String() {
		return err
	}
	return r.deleteAsRead(ctx, secret)
}

// sitesOfSecret returns the Sites to reconcile after a change of a Secret: those in its namespace,
// or the Site of a published connection, even if that Site no longer exists.
func (r *Reconciler) sitesOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetNamespace() == r.ConnectionsNamespace {
		if requests := siteOfAnnotation(ctx, obj); len(requests) > 0 { // expose.go
			return requests
		}
	}
	return r.sites(ctx, client.InNamespace(obj.GetNamespace()))
}
