package siteclass

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// The controller reads these objects by their names and does not watch them.
// +kubebuilder:rbac:groups=postgresql.cnpg.io,resources=clusters;scheduledbackups,namespace=paddock-system,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,namespace=paddock-system,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=get;create;patch;delete

// templateKinds are the kinds of the objects of a database, in the order of deletion. The last one is the
// kind of the object with the data.
var templateKinds = []schema.GroupVersionKind{
	provision.ScheduledBackupKind,
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	provision.ClusterKind,
}

// placementTime is the time after the deletion of a SiteClass within which the Site controller may still
// write a placement that it has chosen before.
const placementTime = 10 * time.Second

func unavailable(format string, args ...any) databaseState {
	return databaseState{v1alpha1.PoolDatabaseUnavailable, fmt.Sprintf(format, args...)}
}

// keep applies the objects of a database of the template and returns its state. there reports whether the
// database exists: it has a Cluster, or has Sites.
func (r *Reconciler) keep(ctx context.Context, class *v1alpha1.SiteClass, number int, hasSites bool) (state databaseState, there bool, err error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(provision.ClusterKind)
	key := client.ObjectKey{Namespace: r.Namespace, Name: provision.PoolName(class.Name, number)}
	switch there, err := r.find(ctx, key, cluster); {
	case err != nil:
		return state, false, err
	case !there:
		// An empty database in its place would hide that the records are lost.
		return unavailable("Cluster %s in namespace %s is missing, but Sites have records in it. Restore it.", key.Name, key.Namespace), hasSites, nil
	case cluster.GetLabels()[v1alpha1.SiteClassLabel] != class.Name:
		return unavailable("Cluster %s in namespace %s does not have the label %s=%s, so it is not used. Rename or delete it.", key.Name, key.Namespace, v1alpha1.SiteClassLabel, class.Name), true, nil
	case cluster.GetDeletionTimestamp() != nil:
		return unavailable("Cluster %s in namespace %s is being deleted.", key.Name, key.Namespace), true, nil
	}
	state, err = r.apply(ctx, class, number, cluster)
	return state, true, err
}

// create creates a database of the template that does not exist.
func (r *Reconciler) create(ctx context.Context, class *v1alpha1.SiteClass, number int) (databaseState, error) {
	return r.apply(ctx, class, number, nil)
}

// apply applies the objects of a database. cluster is the existing one, or nil.
func (r *Reconciler) apply(ctx context.Context, class *v1alpha1.SiteClass, number int, cluster *unstructured.Unstructured) (databaseState, error) {
	database := provision.PoolSite(class, number, r.Namespace)
	options := provision.Options{Namespace: r.Namespace, CloudNativePGImage: r.CloudNativePGImage, ClassName: class.Name}
	if bad, err := r.ensureCredentials(ctx, class, database, options, cluster != nil); bad != nil || err != nil {
		return orZero(bad), err
	}
	// Another major version cannot read the data.
	if cluster == nil || cluster.GetAnnotations()[provision.MajorAnnotation] == provision.Major(database) {
		bad, err := r.applyObjects(ctx, class, database, options)
		switch {
		case err != nil:
			return databaseState{}, err
		case bad != nil && cluster == nil:
			return *bad, nil
		case bad != nil: // the database stays as it was
			state, err := r.observe(ctx, database, cluster)
			state.message = bad.message
			return state, err
		}
	}
	return r.observe(ctx, database, cluster)
}

func orZero(state *databaseState) databaseState {
	if state == nil {
		return databaseState{}
	}
	return *state
}

// ensureCredentials creates the Secret of the database, if neither it nor the Cluster exists. The state that
// it returns is nil if the Secret can be used.
func (r *Reconciler) ensureCredentials(ctx context.Context, class *v1alpha1.SiteClass, database *v1alpha1.Site, options provision.Options, clusterThere bool) (*databaseState, error) {
	secret, key := &corev1.Secret{}, client.ObjectKeyFromObject(database)
	there, err := r.find(ctx, key, secret)
	switch {
	case err != nil:
		return nil, err
	case there && (secret.Type != v1alpha1.SecretTypeDSN || secret.Labels[v1alpha1.SiteClassLabel] != class.Name):
		bad := unavailable("Secret %s in namespace %s has the name of the Secret of a database, but is not one. Rename or delete it.", key.Name, key.Namespace)
		return &bad, nil
	case there:
		return nil, nil
	case clusterThere:
		bad := unavailable("Secret %s in namespace %s with the password of the database is missing. Restore it.", key.Name, key.Namespace)
		return &bad, nil
	}
	if secret, err = provision.NewSecret(database, options, ""); err != nil {
		return nil, err
	}
	return refused(r.Client.Create(ctx, secret, apply.FieldOwner), "Secret", key)
}

// refused returns the state of a database if err says that kube-apiserver rejected one of its objects. It
// returns any other error.
func refused(err error, kind string, key client.ObjectKey) (*databaseState, error) {
	if refusal := apply.Refusal(err); refusal != "" {
		return &databaseState{v1alpha1.PoolDatabaseCreating, fmt.Sprintf("kube-apiserver rejected %s %s: %s", kind, key, refusal)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", kind, key, err)
	}
	return nil, nil
}

// applyObjects applies the objects other than the Secret, and deletes the ScheduledBackup if the template
// has no backup. The state that it returns is nil if all objects were applied.
func (r *Reconciler) applyObjects(ctx context.Context, class *v1alpha1.SiteClass, database *v1alpha1.Site, options provision.Options) (*databaseState, error) {
	for _, object := range provision.Render(database, options) {
		err := apply.Ensure(ctx, r.Client, r.Live, object, apply.Covers)
		if missesKind(err) {
			return &databaseState{v1alpha1.PoolDatabaseCreating, "CloudNativePG is not installed. Install its operator, release 1.25 or later (https://cloudnative-pg.io)."}, nil
		}
		if bad, err := refused(err, object.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(object)); bad != nil || err != nil {
			return bad, err
		}
	}
	if class.Template().CloudNativePG.Backup == nil {
		_, err := r.deleteOurs(ctx, class, provision.ScheduledBackupKind, client.ObjectKeyFromObject(database))
		return nil, err
	}
	return nil, nil
}

// observe returns the state of a database whose objects were applied. cluster is nil if the Cluster has
// just been created.
func (r *Reconciler) observe(ctx context.Context, database *v1alpha1.Site, cluster *unstructured.Unstructured) (databaseState, error) {
	state := provision.Observe(database, provision.Objects{Cluster: cluster})
	switch {
	case !state.Up && state.Reason == v1alpha1.ReasonProvisioning:
		return databaseState{v1alpha1.PoolDatabaseCreating, state.Message}, nil
	case !state.Up:
		return databaseState{v1alpha1.PoolDatabaseUnavailable, state.Message}, nil
	}
	key := client.ObjectKey{Namespace: database.Namespace, Name: provision.AuthoritySecret(database.Name)}
	if there, err := r.find(ctx, key, &corev1.Secret{}); err != nil || !there {
		return databaseState{v1alpha1.PoolDatabaseCreating, "CloudNativePG has not created Secret " + key.Name + " yet."}, err
	}
	return databaseState{phase: v1alpha1.PoolDatabaseReady}, nil
}

// deleteDatabases deletes the databases of the template of a class that is being deleted, if the template
// has deletionPolicy Delete. It returns what it waits for, or "". The caller has checked that no Site has
// data in the databases.
func (r *Reconciler) deleteDatabases(ctx context.Context, class *v1alpha1.SiteClass) (left string, err error) {
	template := class.Template()
	if template == nil || template.DeletionPolicy != v1alpha1.DeletionDelete {
		return "", nil
	}
	// The Site controller may have read the class before the deletion, and place a Site on a database.
	if r.Now().Sub(class.DeletionTimestamp.Time) < placementTime {
		return "time for placements", nil
	}
	for number := 1; number <= lastNumber(class, nil); number++ {
		key := client.ObjectKey{Namespace: r.Namespace, Name: provision.PoolName(class.Name, number)}
		for _, kind := range templateKinds {
			there, err := r.deleteOurs(ctx, class, kind, key)
			if err != nil {
				return "", err
			}
			if there {
				left = kind.Kind + " " + key.Name
			}
		}
	}
	return left, nil
}

// deleteOurs deletes an object of a database of the class's template, and reports whether it existed. It
// keeps an object of the same name without the label of the class.
func (r *Reconciler) deleteOurs(ctx context.Context, class *v1alpha1.SiteClass, kind schema.GroupVersionKind, key client.ObjectKey) (there bool, err error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	there, err = r.find(ctx, key, object)
	switch {
	case !there || err != nil:
		return false, err
	case object.Labels[v1alpha1.SiteClassLabel] != class.Name:
		return false, nil
	case object.DeletionTimestamp != nil:
		return true, nil
	}
	uid := object.GetUID()
	err = r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s %s: %w", kind.Kind, key, err)
	}
	return true, nil
}

// find reads an object from kube-apiserver. It reports whether the object exists. If its kind is not
// installed, it does not exist.
func (r *Reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (there bool, err error) {
	switch err := r.Live.Get(ctx, key, into); {
	case apierrors.IsNotFound(err) || missesKind(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}

// missesKind reports whether err says that the kind is not installed.
func missesKind(err error) bool {
	var missing *meta.NoKindMatchError
	return errors.As(err, &missing)
}
