package site

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// deletionDelay is the delay before the next check whether deleted objects still exist. A volume
// exists until its Pods have ended.
const deletionDelay = 2 * time.Second

// databaseKinds are the kinds of a database in the order of deletion. The last one is the kind of
// the object with the data.
var databaseKinds = map[v1alpha1.PostgresEngine][]schema.GroupVersionKind{
	v1alpha1.EngineStatefulSet: {
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	},
	v1alpha1.EngineCloudNativePG: {
		provision.ScheduledBackupKind,
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		provision.ClusterKind,
	},
}

// deleteDatabases deletes the provisioned databases of the Site's engine: its own and, during a SiteMove,
// the one with the other name. It returns the delay before the next check, or zero if all objects are
// deleted.
func (r *Reconciler) deleteDatabases(ctx context.Context, s *scope, siteKey string) (time.Duration, error) {
	for _, name := range provision.Names {
		if wait, err := r.deleteDatabase(ctx, s, name, siteKey); err != nil || wait > 0 {
			return wait, err
		}
	}
	return 0, nil
}

// deleteDatabase deletes the provisioned database with a name and the Site's engine, whether or not it
// runs. It returns the delay before the next check, or zero if all objects are deleted. With a delay,
// s.found.failed says why objects still exist.
func (r *Reconciler) deleteDatabase(ctx context.Context, s *scope, name, siteKey string) (time.Duration, error) {
	var left string
	for _, kind := range databaseKinds[s.site.Spec.Storage.Postgres.Provisioned.Engine] {
		there, err := r.deleteOurs(ctx, kind, client.ObjectKey{Namespace: s.site.Namespace, Name: name}, siteKey)
		if apierrors.IsForbidden(err) && kind.Kind == "Secret" {
			s.found.failed = "The database cannot be deleted. " + secrets.Forbidden(s.site.Namespace, r.Namespace)
			return secrets.RetryInterval, nil
		}
		if err != nil {
			return 0, err
		}
		if there {
			left = kind.Kind + " " + name
		}
	}
	if left == "" {
		return 0, nil
	}
	s.found.failed = "The database is being deleted: " + left + " still exists."
	return deletionDelay, nil
}

// deleteUnasked deletes the ScheduledBackup of CloudNativePG if the spec has no backup.
func (r *Reconciler) deleteUnasked(ctx context.Context, site *v1alpha1.Site, siteKey string) error {
	if site.Spec.Storage.Postgres.Provisioned.Backup != nil {
		return nil
	}
	_, err := r.deleteOurs(ctx, provision.ScheduledBackupKind, client.ObjectKey{Namespace: site.Namespace, Name: provision.NameOf(site)}, siteKey)
	return err
}

// deleteOurs deletes an object of the database and reports whether it existed. It keeps an object
// of the same name with another site key.
func (r *Reconciler) deleteOurs(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey, siteKey string) (there bool, err error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	there, err = findInto(ctx, r.Live, key, object)
	switch {
	case !there || err != nil:
		return false, err
	case object.Labels[v1alpha1.SiteKeyLabel] != siteKey:
		return false, nil
	case object.DeletionTimestamp != nil:
		return true, nil
	}
	uid := object.GetUID()
	err = r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s %s: %w", kind.Kind, key.Name, err)
	}
	return true, nil
}
