package site

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// Validator is a validating admission webhook that reports problems of a Site before the controller
// does. It denies a new Site that cannot become ready until a person acts, because of its claims or
// of the major version of an existing database. It returns a warning for other problems, such as a
// missing object that the same apply may create later. If a check fails with an error, it admits the
// Site. The controller repeats the checks for all Sites.
//
// Any client can call it, so its responses contain no names of other Sites and no contents of
// Secrets.
type Validator struct {
	// Live reads from kube-apiserver, because objects of the same apply may not be in the cache yet.
	Live client.Reader
	// Mapper finds out which kinds are installed.
	Mapper meta.RESTMapper
	// Namespace is the namespace of the controller.
	Namespace string
}

var _ admission.Validator[*v1alpha1.Site] = (*Validator)(nil)

// SetupWithManager registers the Validator with the webhook server of the manager.
func (v *Validator) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.Site{}).WithValidator(v).Complete()
}

// ValidateCreate implements admission.Validator. It checks the claims and the storage of the Site.
func (v *Validator) ValidateCreate(ctx context.Context, site *v1alpha1.Site) (admission.Warnings, error) {
	for _, look := range []func(context.Context, *v1alpha1.Site) (*objection, bool, error){
		v.lookAtClaims, v.lookAtStorage,
	} {
		o, passes, err := look(ctx, site)
		switch {
		case err != nil: // an error of the check does not deny the Site
			logf.FromContext(ctx).Error(err, "cannot check a Site; it is admitted")
		case o != nil && !passes:
			return nil, o.refuse(site)
		case o != nil:
			return admission.Warnings{o.warning()}, nil
		}
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator. It checks only the Secret of an external database
// that has changed, and denies nothing: a problem is a warning. The controller checks other changes.
func (v *Validator) ValidateUpdate(ctx context.Context, old, site *v1alpha1.Site) (admission.Warnings, error) {
	if !site.DeletionTimestamp.IsZero() || externalOf(site) == nil || equality.Semantic.DeepEqual(externalOf(old), externalOf(site)) {
		return nil, nil
	}
	o, err := v.lookAtSecret(ctx, site)
	if err != nil {
		logf.FromContext(ctx).Error(err, "cannot check a Site; it is admitted")
	}
	if o == nil {
		return nil, nil
	}
	return admission.Warnings{o.warning()}, nil
}

// ValidateDelete implements admission.Validator. It allows all deletions.
func (v *Validator) ValidateDelete(context.Context, *v1alpha1.Site) (admission.Warnings, error) {
	return nil, nil
}

func (v *Validator) lookAtClaims(ctx context.Context, site *v1alpha1.Site) (*objection, bool, error) {
	view, err := viewClaims(ctx, v.Live, site)
	if err != nil {
		return nil, false, err
	}
	o, passes := objectToClaims(view)
	return o, passes, nil
}

func (v *Validator) lookAtStorage(ctx context.Context, site *v1alpha1.Site) (*objection, bool, error) {
	if secretName(site) != "" {
		if o, err := v.lookAtSecret(ctx, site); o != nil || err != nil || externalOf(site) != nil {
			return o, true, err
		}
	}
	// The Site would adopt data that has the site key of its SiteClaim. Without a SiteClaim, any data
	// is foreign.
	claim, err := find[v1alpha1.SiteClaim](ctx, v.Live, client.ObjectKey{Name: site.SiteID()})
	if err != nil {
		return nil, false, err
	}
	if claim == nil {
		claim = &v1alpha1.SiteClaim{ObjectMeta: metav1.ObjectMeta{Name: site.SiteID()}}
	}
	switch postgres := site.Spec.Storage.Postgres; {
	case postgres != nil && postgres.Pool != nil:
		return nil, false, nil
	case postgres != nil:
		return v.lookAtDatabase(ctx, site, claim.Spec.SiteKey)
	}
	foreign := fields.OneTermNotEqualSelector(siteKeyField, claim.Spec.SiteKey)
	name, err := firstOf(ctx, v.Live, "Record", site.Namespace, foreign)
	if err != nil || name == "" {
		return nil, false, err
	}
	bad := decideStorage(storageView{namespace: site.Namespace, claim: claim, foreign: true})
	return &objection{bad.reason, bad.message, fieldStorage}, true, nil
}

func (v *Validator) lookAtDatabase(ctx context.Context, site *v1alpha1.Site, siteKey string) (*objection, bool, error) {
	objects, err := viewDatabase(ctx, v.Live, v.Live, site)
	if err != nil {
		return nil, false, err
	}
	if bad := decideProvision(site, siteKey, objects); bad != nil {
		o, passes := objectToData(bad)
		return o, passes, nil
	}
	if bad, err := findElsewhere(ctx, v.Live, v.Live, site, objects); bad != nil || err != nil {
		o, passes := objectToData(bad)
		return o, passes, err
	}
	if site.Spec.Storage.Postgres.Provisioned.Engine != v1alpha1.EngineCloudNativePG {
		return nil, false, nil
	}
	_, err = v.Mapper.RESTMapping(provision.ClusterKind.GroupKind(), provision.ClusterKind.Version)
	if kindMissing(err) {
		return &objection{engineMissing.reason, engineMissing.message, fieldProvisioned.Child("engine")}, true, nil
	}
	return nil, false, err
}

// lookAtSecret checks whether the controller may read the Secret and, for an external database,
// whether the Secret exists with the type SecretTypeDSN. It does not use the contents.
func (v *Validator) lookAtSecret(ctx context.Context, site *v1alpha1.Site) (*objection, error) {
	secret, err := find[corev1.Secret](ctx, v.Live, client.ObjectKey{Namespace: site.Namespace, Name: secretName(site)})
	switch {
	case apierrors.IsForbidden(err):
		bad := secretsForbidden(site.Namespace, v.Namespace)
		return &objection{bad.reason, bad.message, fieldStorage.Child("postgres")}, nil
	case err != nil || externalOf(site) == nil:
		return nil, err
	}
	bad := noSecret(site, secret)
	if bad == nil {
		return nil, nil
	}
	return &objection{bad.reason, bad.message, fieldSecretRef}, nil
}

func externalOf(site *v1alpha1.Site) *v1alpha1.ExternalPostgres {
	if site.Spec.Storage.Postgres == nil {
		return nil
	}
	return site.Spec.Storage.Postgres.External
}
