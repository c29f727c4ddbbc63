package site

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	recordsv1alpha1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/api/v1alpha1"
)

// siteKeyField is the field selector for the records of a site.
const siteKeyField = "spec.siteKey"

// foreignRecordsDelay is the delay before the check for foreign records is repeated. The controller
// does not watch records.
const foreignRecordsDelay = time.Minute

// storage checks and prepares the storage of the Site. Its results are in s.found.
func (r *Reconciler) storage(ctx context.Context, s *scope) (step, error) {
	if s.siteClaim != nil {
		bad, err := r.storedElsewhere(ctx, s.site, s.siteClaim)
		if bad != nil {
			s.found.storageReady = bad
			s.lookAgain(databaseDelay)
		}
		if bad != nil || err != nil {
			return proceed, err
		}
	}
	if err := r.releasePlacement(ctx, s); err != nil { // pool.go
		return proceed, err
	}
	if s.site.Spec.Storage.Type == v1alpha1.StoragePostgres {
		return proceed, r.postgresStorage(ctx, s)
	}
	return proceed, r.clusterStorage(ctx, s)
}

// storedElsewhere returns a verdict if the data of the SiteClaim is in another storage than that of the
// Site, which the Site must then not use. Otherwise, and for a Site that has been served with this data, it
// returns nil.
func (r *Reconciler) storedElsewhere(ctx context.Context, site *v1alpha1.Site, claim *v1alpha1.SiteClaim) (*verdict, error) {
	if site.Status.SiteKey == claim.Spec.SiteKey {
		return nil, nil
	}
	if bad, moving, err := r.leftByMove(ctx, site, claim); bad != nil || moving || err != nil { // move_deleted.go
		return bad, err
	}
	storage := &site.Spec.Storage
	if placement := claim.Spec.Placement; placement != nil && site.Status.Move == nil && !isPooled(storage) {
		return foreignRecords("The retained records of SiteClaim %q are in database %q of the pool of SiteClass %q. Create the Site with spec.className %q, and then move it by a SiteMove.",
			claim.Name, placement.Database, placement.ClassName, placement.ClassName), nil
	}
	if external := claim.Spec.External; external != nil && !equality.Semantic.DeepEqual(external, externalSecret(storage)) {
		return foreignRecords("The retained records of SiteClaim %q are in the database of Secret %q, key %q. Delete the Site, and create it with that storage.postgres.external.secretRef. "+
			"If that database has no records of the Site, ask a cluster administrator to remove spec.external of the SiteClaim.", claim.Name, external.Name, external.Key), nil
	}
	record, err := firstOf(ctx, r.Live, "Record", site.Namespace, fields.OneTermEqualSelector(siteKeyField, claim.Spec.SiteKey))
	switch {
	case err != nil:
		return nil, err
	case record != "" && storage.Type != v1alpha1.StorageCluster:
		return foreignRecords("Namespace %q has the retained records of SiteClaim %q. Delete the Site, create it with storage.type Cluster, and then move it by a SiteMove.", site.Namespace, claim.Name), nil
	case isProvisioned(storage):
		return nil, nil // see decideProvision and findElsewhere
	case record != "" || claim.Spec.External != nil:
		return nil, nil // a provisioned database with the site key is the target of a SiteMove that has not begun to copy
	}
	return r.storedInProvisioned(ctx, site, claim) // provision.go
}

func foreignRecords(format string, args ...any) *verdict {
	return &verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(format, args...)}
}

// noteExternal writes the Secret of an external database to the SiteClaim, which outlives the Site. With
// other storage, it removes the Secret from the SiteClaim. It is called before the Site is served from
// the storage.
func (r *Reconciler) noteExternal(ctx context.Context, claim *v1alpha1.SiteClaim, storage *v1alpha1.Storage) error {
	external := externalSecret(storage)
	if equality.Semantic.DeepEqual(claim.Spec.External, external) {
		return nil
	}
	claim.Spec.External = external
	return r.updateClaim(ctx, claim)
}

// externalSecret returns the Secret of an external database, or nil for other storage.
func externalSecret(storage *v1alpha1.Storage) *v1alpha1.DSNReference {
	if storage.Postgres == nil || storage.Postgres.External == nil {
		return nil
	}
	return &storage.Postgres.External.SecretRef
}

// clusterStorage checks that the namespace has no records of another SiteClaim. Storage in etcd
// needs no other preparation.
func (r *Reconciler) clusterStorage(ctx context.Context, s *scope) error {
	view := storageView{namespace: s.site.Namespace, claim: s.siteClaim}
	if s.siteClaim != nil && !storageChecked(s.site, s.siteClaim.Spec.SiteKey) {
		// A verdict about the data of an earlier claim no longer applies.
		s.found.storageReady = &verdict{metav1.ConditionUnknown, v1alpha1.ReasonPending, "The records in the namespace have not been checked yet."}
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
		if err := r.noteExternal(ctx, s.siteClaim, &s.site.Spec.Storage); err != nil {
			return err
		}
		s.found.siteKey = s.siteClaim.Spec.SiteKey
	}
	if v.reason == v1alpha1.ReasonForeignRecords {
		s.requeueAfter = foreignRecordsDelay
	}
	return nil
}

// storageChecked reports whether StorageReady is true for this site key.
func storageChecked(site *v1alpha1.Site, siteKey string) bool {
	return site.Status.SiteKey == siteKey &&
		meta.IsStatusConditionTrue(site.Status.Conditions, v1alpha1.ConditionStorageReady)
}

// noStorage is the verdict for a Site that holds no claim.
var noStorage = verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "The Site is not accepted, so it has no storage. See the condition Accepted."}

// storageView is the observed state of a Site's storage.
type storageView struct {
	namespace string
	// claim is the SiteClaim that the Site holds, or nil.
	claim *v1alpha1.SiteClaim
	// foreign is true if the namespace has Records with another siteKey than the claim.
	foreign bool
}

func decideStorage(v storageView) verdict {
	switch {
	case v.claim == nil:
		return noStorage
	case v.foreign:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, fmt.Sprintf(
			"Namespace %q has records with another site key than SiteClaim %q. Use another namespace, "+
				"ask a cluster administrator to restore the SiteClaim with the site key of the records, or delete the namespace with the records.", v.namespace, v.claim.Name)}
	default:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonClusterStorage, "Records are stored as objects of the cluster."}
	}
}

// firstOf returns the name of the first object of a kind of records.paddock.health that matches the
// selector, or "" if there is none.
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
