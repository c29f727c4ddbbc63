// Package secrets defines which Secrets in Sites' namespaces the controller can read, and the
// message if it has no right to read them.
package secrets

import (
	"fmt"
	"time"
)

// Access selects the namespaces in which the controller can read Secrets. The controller uses only
// Secrets of Paddock's types, and the certificate authorities of provisioned databases of
// CloudNativePG. The zero value means Cluster.
type Access string

const (
	// Cluster selects all namespaces. The controller watches Secrets of Paddock's types.
	Cluster Access = "Cluster"
	// Namespaced selects the namespaces in which the owner has bound Role to the controller. A watch
	// would need rights in all namespaces, so the controller reads each Secret by name, and reads it
	// again after Interval.
	Namespaced Access = "Namespaced"
)

// Role is the ClusterRole that the owner of a namespace binds to the controller's ServiceAccount,
// so that it can use the Secrets there.
const Role = "paddock-site-secrets"

const (
	// Interval is the interval between reads of a Secret that is not watched.
	Interval = time.Minute
	// RetryInterval is the delay before a Secret that is missing or not readable is read again.
	RetryInterval = 20 * time.Second
)

// Forbidden returns the message for the owner of a namespace if the controller cannot read its
// Secrets. operator is the namespace of the controller's ServiceAccount.
func Forbidden(namespace, operator string) string {
	return fmt.Sprintf("The controller has no right to use Secrets of namespace %q. Bind ClusterRole %s to the ServiceAccount of the controller in that namespace: "+
		"kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s:paddock-controller",
		namespace, Role, Role, namespace, Role, operator)
}
