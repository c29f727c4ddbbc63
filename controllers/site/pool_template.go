package site

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/controllers/site/provision"
)

// noRoom returns the verdict for a Site for which no database of the pool has room. Package siteclass creates
// the databases of the template.
func noRoom(class *v1alpha1.SiteClass, region string) *verdict {
	where := "the pool of SiteClass " + class.Name
	if region != "" {
		where = fmt.Sprintf("region %q of %s", region, where)
	}
	template := class.Template()
	switch {
	case class.CanGrow(region):
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonProvisioning, fmt.Sprintf(
			"No database in %s is ready and has room for another Site. The Site waits for one that is created, which takes minutes. If this persists, ask a cluster administrator to read status.databases of the SiteClass.", where)}
	case template != nil && class.DeletionTimestamp.IsZero() && (region == "" || template.Region == region):
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonNoCapacity, fmt.Sprintf(
			"No database in %s has room for another Site, and the maximum of %d created databases is reached. Ask a cluster administrator to raise maxDatabases or capacity of the template, or to add a database.",
			where, *template.MaxDatabases)}
	default:
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonNoCapacity, fmt.Sprintf(
			"No database in %s has room for another Site. Ask a cluster administrator to add a database, or to raise the capacity of one.", where)}
	}
}

// templateConnection returns the connection to a database of the template of a SiteClass, which is in the
// operator's namespace.
func (r *Reconciler) templateConnection(ctx context.Context, class *v1alpha1.SiteClass, number int) (dsn.Connection, *verdict, error) {
	database := provision.PoolSite(class, number, r.Namespace)
	secret, err := find[corev1.Secret](ctx, r.Live, client.ObjectKeyFromObject(database))
	if err != nil {
		return dsn.Connection{}, nil, err
	}
	if secret == nil || secret.Type != v1alpha1.SecretTypeDSN || secret.Labels[v1alpha1.SiteClassLabel] != class.Name {
		return dsn.Connection{}, &verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, fmt.Sprintf(
			"The connection of database %q of SiteClass %q is missing. Ask a cluster administrator to restore Secret %s in namespace %s.",
			v1alpha1.TemplateDatabase(number), class.Name, database.Name, database.Namespace)}, nil
	}
	return r.connectionTo(ctx, database, secret)
}
