package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// formerRetry is the interval between attempts to copy or remove the connections.
const formerRetry = 5 * time.Second

// FormerConnections moves the Secrets with database connections that releases up to v0.1 published in
// the controller's namespace to the connections namespace. It copies the Secrets at startup, without
// waiting for the leader election, so that API servers of this release can serve at once. It deletes the
// originals when Keep has passed since the copy. It is a Runnable of a manager and runs in all replicas.
type FormerConnections struct {
	// Client writes to kube-apiserver.
	Client client.Client
	// Live reads from kube-apiserver, because the cache of the manager does not hold these Secrets.
	Live client.Reader
	// From is the controller's namespace, which has the originals. To is the connections namespace.
	From, To string
	// Keep is how long the originals are kept after they were copied, for API servers of the previous
	// release.
	Keep time.Duration
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=paddock-system,verbs=list;delete

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because the
// leader may still run the previous release.
func (f *FormerConnections) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when the originals are deleted or ctx is done.
func (f *FormerConnections) Start(ctx context.Context) error {
	f.untilDone(ctx, "cannot copy the connections of the previous release", f.copy)
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(f.Keep):
	}
	f.untilDone(ctx, "cannot remove the connections of the previous release", f.remove)
	return nil
}

func (f *FormerConnections) untilDone(ctx context.Context, failure string, pass func(context.Context) error) {
	_ = wait.PollUntilContextCancel(ctx, formerRetry, true, func(ctx context.Context) (bool, error) {
		err := pass(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, failure, "from", f.From, "to", f.To)
		}
		return err == nil, nil
	})
}

// copy copies the Secrets that do not exist in To. It does not change a Secret that exists there, which
// is newer.
func (f *FormerConnections) copy(ctx context.Context) error {
	former, err := f.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, secret := range former {
		err := f.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.To, Name: secret.Name, Labels: secret.Labels, Annotations: secret.Annotations},
			Type:       secret.Type, Data: secret.Data,
		}, apply.FieldOwner)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create Secret %s/%s: %w", f.To, secret.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (f *FormerConnections) remove(ctx context.Context) error {
	former, err := f.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, secret := range former {
		err := f.Client.Delete(ctx, &secret, client.Preconditions{UID: ptr.To(secret.UID)})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete Secret %s/%s: %w", f.From, secret.Name, err))
		}
	}
	return errors.Join(errs...)
}

// list returns the connections in From: Secrets of type SecretTypeDSN with the name and annotation
// of a connection.
func (f *FormerConnections) list(ctx context.Context) ([]corev1.Secret, error) {
	var all corev1.SecretList
	err := f.Live.List(ctx, &all, client.InNamespace(f.From), client.MatchingFields{"type": v1alpha1.SecretTypeDSN})
	if err != nil {
		return nil, fmt.Errorf("list Secrets of type %s in namespace %s: %w", v1alpha1.SecretTypeDSN, f.From, err)
	}
	var found []corev1.Secret
	for _, secret := range all.Items {
		namespace, _, annotated := strings.Cut(secret.Annotations[v1alpha1.SiteAnnotation], "/")
		if annotated && secret.Name == v1alpha1.ConnectionName(namespace) {
			found = append(found, secret)
		}
	}
	return found, nil
}
