package site

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

// siteKeyField selects the records of a site.
const siteKeyField = "spec.siteKey"

// foreignRecordsDelay is the pause before foreign records are looked for again:
// the controller does not watch records.
const foreignRecordsDelay = time.Minute

// storage makes the storage ready, as far as it is not.
func (r *Reconciler) storage(ctx context.Context, s *scope) (step, error) {
	if s.site.Spec.Storage.Type == v1alpha1.StoragePostgres {
		return proceed, r.postgresStorage(ctx, s)
	}
	return proceed, r.clusterStorage(ctx, s)
}

// clusterStorage checks that the namespace holds no records of another claim. Etcd-backed
// storage needs nothing else to be ready.
func (r *Reconciler) clusterStorage(ctx context.Context, s *scope) error {
	view := storageView{namespace: s.site.Namespace, claim: s.siteClaim}
	if s.siteClaim != nil && !storageChecked(s.site, s.siteClaim.Spec.SiteKey) {
		// Until it is known: what was said of an earlier claim's data no longer holds.
		s.found.storageReady = &verdict{metav1.ConditionUnknown, v1alpha1.ReasonPending, "the namespace's records were not checked yet"}
		foreign := fields.OneTermNotEqualSelector(siteKeyField, s.siteClaim.Spec.SiteKey)
		name, err := firstOf(ctx, r.Live, "Record", s.site.Namespace, foreign)
		if err != nil {
			return err
		}
		view.foreign = name != ""
	}
	v := decideStorage(view)
	s.found.storageReady = &v
	if v.status == metav1.ConditionTrue {
		s.found.siteKey = s.siteClaim.Spec.SiteKey
	}
	if v.reason == v1alpha1.ReasonForeignRecords {
		s.requeueAfter = foreignRecordsDelay
	}
	return nil
}

// storageChecked reports whether the storage was found ready under this very key.
func storageChecked(site *v1alpha1.Site, siteKey string) bool {
	return site.Status.SiteKey == siteKey &&
		meta.IsStatusConditionTrue(site.Status.Conditions, v1alpha1.ConditionStorageReady)
}

// noStorage is said of a Site that holds no claim.
var noStorage = verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "a Site that is not accepted has no storage"}

// storageView is what is known of a Site's storage.
type storageView struct {
	namespace string
	// claim that the Site holds, else nil.
	claim *v1alpha1.SiteClaim
	// foreign: the namespace holds Records with another siteKey.
	foreign bool
}

func decideStorage(v storageView) verdict {
	switch {
	case v.claim == nil:
		return noStorage
	case v.foreign:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(
			"namespace %q holds records of another site key than that of SiteClaim %q. Delete those records, "+
				"or have a cluster administrator restore the SiteClaim that they belong to.", v.namespace, v.claim.Name)}
	default:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonClusterStorage, "records are kept as objects of the cluster"}
	}
}

// firstOf names an object of that kind of record that the selector fits, the
// first by name; empty when there is none.
func firstOf(ctx context.Context, live client.Reader, kind, namespace string, selector fields.Selector) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(recordsv1alpha1.GroupVersion.WithKind(kind + "List"))
	err := live.List(ctx, list, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: selector}, client.Limit(1))
	if err != nil {
		return "", fmt.Errorf("look for a %s in namespace %s: %w", kind, namespace, err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return list.Items[0].Name, nil
}
