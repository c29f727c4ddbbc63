package site

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

var engineMissing = verdict{
	metav1.ConditionFalse, v1alpha1.ReasonEngineMissing,
	"CloudNativePG is not installed. Install its operator, release 1.25 or later (https://cloudnative-pg.io).",
}

// provisionDatabase creates or updates the Site's own database and returns the connection to it. If
// the verdict is not nil, it says why there is no connection yet.
func (r *Reconciler) provisionDatabase(ctx context.Context, s *scope) (dsn.Connection, *verdict, error) {
	s.requeueAfter = databaseDelay
	site := s.site
	engine := site.Spec.Storage.Postgres.Provisioned.Engine
	options := provision.Options{
		Namespace: r.Namespace, PostgresImage: r.PostgresImage, CloudNativePGImage: r.CloudNativePGImage,
		SiteKey: s.siteClaim.Spec.SiteKey,
	}
	name := provision.NameOf(site)
	objects, err := viewDatabase(ctx, r.databases(name), r.Live, site)
	if err != nil {
		return dsn.Connection{}, nil, err
	}
	if bad := decideProvision(site, options.SiteKey, objects); bad != nil {
		return dsn.Connection{}, bad, nil
	}
	if !s.moveTarget && site.Status.Move == nil { // a move has two databases, see leftByMove
		if bad, err := findElsewhere(ctx, r.databases(provision.Other(name)), r.Live, site, objects); bad != nil || err != nil {
			return dsn.Connection{}, bad, err
		}
	}
	secret, bad, err := r.ensureCredentials(ctx, site, options, objects.Data(engine) != nil)
	if err != nil || bad != nil {
		return dsn.Connection{}, bad, err
	}
	options.Certificate = provision.Certificate(secret)
	for _, object := range provision.Render(site, options) {
		bad, err := r.ensure(ctx, r.readerOf(name, object), object, apply.Covers) // ensure.go
		if kindMissing(err) {
			return dsn.Connection{}, &engineMissing, nil
		}
		if err != nil || bad != nil {
			return dsn.Connection{}, bad, err
		}
	}
	if engine == v1alpha1.EngineCloudNativePG {
		if err := r.deleteUnasked(ctx, site, options.SiteKey); err != nil { // provision_delete.go
			return dsn.Connection{}, nil, err
		}
		if err := r.clusters[name].start(); err != nil { // watch_late.go
			return dsn.Connection{}, nil, err
		}
	}
	if state := provision.Observe(site, objects); !state.Up {
		return dsn.Connection{}, &verdict{metav1.ConditionFalse, state.Reason, state.Message}, nil
	}
	return r.connectionTo(ctx, site, secret)
}

// viewDatabase reads the objects of a database. The Cluster of CloudNativePG is read from
// kube-apiserver, because the cache cannot have it while its kind is not installed. It is not read if
// the Site has another engine and the database has a volume.
func viewDatabase(ctx context.Context, cached, live client.Reader, site *v1alpha1.Site) (provision.Objects, error) {
	name := provision.NameOf(site)
	key := client.ObjectKey{Namespace: site.Namespace, Name: name}
	var o provision.Objects
	var errs [4]error
	o.Volume, errs[0] = find[corev1.PersistentVolumeClaim](ctx, cached, key)
	o.StatefulSet, errs[1] = find[appsv1.StatefulSet](ctx, cached, key)
	o.Pod, errs[2] = find[corev1.Pod](ctx, cached, client.ObjectKey{Namespace: site.Namespace, Name: provision.PodName(name)})
	if o.Volume == nil || site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		cluster := newObject(provision.ClusterKind)
		var there bool
		if there, errs[3] = findInto(ctx, live, key, cluster); there {
			o.Cluster = cluster
		}
	}
	return o, errors.Join(errs[:]...)
}

// databases returns the cache of the objects of databases with a name.
func (r *Reconciler) databases(name string) client.Reader {
	if name == provision.SecondName {
		return r.second
	}
	return r.Client
}

// readerOf returns the reader for an object of the database with a name, the same as in viewDatabase.
func (r *Reconciler) readerOf(name string, object client.Object) client.Reader {
	if _, untyped := object.(*unstructured.Unstructured); untyped {
		return r.Live
	}
	return r.databases(name)
}

// findElsewhere returns a verdict if the namespace has a provisioned database with the other of both names,
// because the Site must then not create or adopt a database. own are the objects of the Site's own
// database. It returns nil for a Site that has used its own database: such a Site can have both while it
// is moved.
func findElsewhere(ctx context.Context, cached, live client.Reader, site *v1alpha1.Site, own provision.Objects) (*verdict, error) {
	if own.Any() && site.Status.SiteKey != "" {
		return nil, nil
	}
	elsewhere, other := site.DeepCopy(), provision.Other(provision.NameOf(site))
	elsewhere.Spec.Storage.Postgres.Provisioned.Name = other
	there, err := viewDatabase(ctx, cached, live, elsewhere)
	if err != nil || !there.Any() {
		return nil, err
	}
	return &verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(
		"Namespace %q has the database %s. To use its data, set spec.storage.postgres.provisioned.name to %s. Otherwise delete it.", site.Namespace, other, other)}, nil
}

// storedInProvisioned returns a verdict if the namespace has a provisioned database with the site key of
// the SiteClaim, because a Site with other storage must then not use that storage. Otherwise it returns
// nil.
func (r *Reconciler) storedInProvisioned(ctx context.Context, site *v1alpha1.Site, claim *v1alpha1.SiteClaim) (*verdict, error) {
	for _, name := range provision.Names {
		provisioned := &v1alpha1.Site{Spec: v1alpha1.SiteSpec{Storage: v1alpha1.Storage{Postgres: &v1alpha1.PostgresStorage{
			Provisioned: &v1alpha1.ProvisionedPostgres{Engine: v1alpha1.EngineCloudNativePG, Name: name}, // with this engine, viewDatabase reads the Cluster, too
		}}}}
		provisioned.Namespace = site.Namespace
		objects, err := viewDatabase(ctx, r.databases(name), r.Live, provisioned)
		if err != nil {
			return nil, err
		}
		for _, engine := range provision.Engines {
			if data := objects.Data(engine); data != nil && data.GetLabels()[v1alpha1.SiteKeyLabel] == claim.Spec.SiteKey {
				return foreignRecords("Namespace %q has the database %s of engine %s with the retained records of SiteClaim %q. "+
					"Delete the Site, and create it with that storage.postgres.provisioned, or delete the database.", site.Namespace, name, engine, claim.Name), nil
			}
		}
	}
	return nil, nil
}

// decideProvision returns why the Site cannot use the existing data, or nil.
func decideProvision(site *v1alpha1.Site, siteKey string, objects provision.Objects) *verdict {
	engine := site.Spec.Storage.Postgres.Provisioned.Engine
	for _, other := range provision.Engines {
		if other != engine && objects.Data(other) != nil {
			return &verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(
				"Namespace %q has a database of engine %s. Create the Site with that engine, or delete the database.", site.Namespace, other)}
		}
	}
	data := objects.Data(engine)
	if data == nil {
		return nil
	}
	key, keyed := data.GetLabels()[v1alpha1.SiteKeyLabel]
	major, noted := data.GetAnnotations()[provision.MajorAnnotation]
	switch {
	case data.GetDeletionTimestamp() != nil:
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonProvisioning, "An earlier database in the namespace is being deleted."}
	case keyed && key != siteKey:
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(
			"Namespace %q has the database %s of another site key. Delete the database, remove the label %s from it to let this Site use the database without its records, "+
				"or ask a cluster administrator to restore the SiteClaim with that site key.", site.Namespace, provision.NameOf(site), v1alpha1.SiteKeyLabel)}
	case noted && major != provision.Major(site):
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonMajorUpgrade, fmt.Sprintf(
			"The data was written by Postgres %s, and %s cannot read it. Set spec.storage.postgres.provisioned.version to %s or to one of its minor versions. "+
				"To change the major version, move the Site to a new database with a SiteMove.", major, provision.Major(site), major)}
	default:
		return nil
	}
}

// ensureCredentials returns the Secret of the database, and creates it if it is missing. If the
// data exists, the new Secret has the password of the published connection. If no connection to this
// database is published, the verdict says that the Secret is missing.
func (r *Reconciler) ensureCredentials(ctx context.Context, site *v1alpha1.Site, o provision.Options, dataThere bool) (*corev1.Secret, *verdict, error) {
	name := client.ObjectKey{Namespace: site.Namespace, Name: provision.NameOf(site)}
	secret, err := find[corev1.Secret](ctx, r.siteSecrets(), name)
	if err == nil && secret == nil {
		secret, err = find[corev1.Secret](ctx, r.Live, name) // the cache has only Secrets of type SecretTypeDSN, and may be stale
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, secretsForbidden(site.Namespace, r.Namespace), nil
	case err != nil:
		return nil, nil, err
	case secret != nil && secret.Type != v1alpha1.SecretTypeDSN:
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonInvalidSecret, fmt.Sprintf(
			"Secret %q has the name of the database's Secret but not the type %s. Delete the Secret.", name.Name, v1alpha1.SecretTypeDSN)}, nil
	case secret != nil:
		return secret, nil, nil
	}
	var password string
	if dataThere {
		connection, there, err := r.publishedConnection(ctx, site.Namespace, o.SiteKey)
		if err != nil {
			return nil, nil, err
		}
		if password = provision.Password(site, connection); !there || password == "" {
			return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, fmt.Sprintf(
				"Secret %q with the password of the database does not exist. Restore the Secret.", name.Name)}, nil
		}
	}
	if secret, err = provision.NewSecret(site, o, password); err != nil {
		return nil, nil, err
	}
	switch err := r.Client.Create(ctx, secret, apply.FieldOwner); {
	case apierrors.IsForbidden(err): // by a quota, or because the role only allows reading
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRefused, fmt.Sprintf("kube-apiserver rejected Secret %s: %s", name.Name, err)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("create Secret %s: %w", name, err)
	}
	return secret, nil, nil
}

// connectionTo returns the connection to the Site's database.
func (r *Reconciler) connectionTo(ctx context.Context, site *v1alpha1.Site, secret *corev1.Secret) (dsn.Connection, *verdict, error) {
	var authority []byte
	name := provision.NameOf(site)
	if site.Spec.Storage.Postgres.Provisioned.Engine == v1alpha1.EngineCloudNativePG {
		theirs, err := find[corev1.Secret](ctx, r.Live, client.ObjectKey{Namespace: site.Namespace, Name: provision.AuthoritySecret(name)})
		if err != nil {
			return dsn.Connection{}, nil, err
		}
		if theirs == nil {
			return dsn.Connection{}, &verdict{metav1.ConditionFalse, v1alpha1.ReasonProvisioning, fmt.Sprintf(
				"CloudNativePG has not created Secret %s yet.", provision.AuthoritySecret(name))}, nil
		}
		authority = theirs.Data[dsn.CAKey]
	}
	connection, err := provision.Connection(site, secret, authority)
	bad, err := invalidSecret(name, err)
	return connection, bad, err
}
