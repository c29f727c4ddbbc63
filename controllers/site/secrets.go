package site

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/secrets"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// secretName returns the name of the Secret in the Site's namespace with the connection to its
// database, or "" if the Site needs none.
func secretName(site *v1alpha1.Site) string {
	switch postgres := site.Spec.Storage.Postgres; {
	case site.Spec.Storage.Type != v1alpha1.StoragePostgres || postgres == nil || postgres.Pool != nil:
		return ""
	case postgres.External != nil:
		return postgres.External.SecretRef.Name
	default:
		return provision.NameOf(site)
	}
}

// siteSecrets returns the reader for Secrets in Sites' namespaces.
func (r *Reconciler) siteSecrets() client.Reader {
	if r.SecretAccess == secrets.Namespaced {
		return r.Live
	}
	return r.Client
}

func secretsForbidden(namespace, operator string) *verdict {
	return &verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretsForbidden, secrets.Forbidden(namespace, operator)}
}

// mayReadSecret checks whether the controller has the right to read the Secret that the Site needs.
// Without the right, the Site claims nothing. Existing claims, and the conditions of its data,
// stay.
func (r *Reconciler) mayReadSecret(ctx context.Context, s *scope) (step, error) {
	name := secretName(s.site)
	if r.SecretAccess != secrets.Namespaced || name == "" {
		return proceed, nil
	}
	_, err := find[corev1.Secret](ctx, r.Live, client.ObjectKey{Namespace: s.site.Namespace, Name: name})
	if !apierrors.IsForbidden(err) {
		return proceed, err
	}
	s.found.accepted = secretsForbidden(s.site.Namespace, r.Namespace)
	s.requeueAfter = secrets.RetryInterval
	return finish, nil
}

// lookAtSecretAgain schedules a reconcile for a Secret that is not watched: after Interval, or
// after RetryInterval if no other reconcile is scheduled.
func (r *Reconciler) lookAtSecretAgain(s *scope) {
	switch {
	case r.SecretAccess != secrets.Namespaced:
	case s.requeueAfter == 0:
		s.lookAgain(secrets.RetryInterval)
	default:
		s.lookAgain(secrets.Interval)
	}
}
