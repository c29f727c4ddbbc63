// Package secrets says how the controller comes by the Secrets of Sites' namespaces, and what
// is said where it may not read them.
package secrets

import (
	"fmt"
	"time"
)

// Access is where the controller may read Secrets, of which it uses its own types.
type Access string

const (
	// Cluster is everywhere: the controller watches those of its types.
	Cluster Access = "Cluster"
	// Namespaced is where the owner of a namespace bound Role. Such a right may come and go, and a
	// watch of all namespaces takes a right to all: the controller reads each Secret by its name,
	// and reads it again in time.
	Namespaced Access = "Namespaced"
)

// Role is the ClusterRole that the owner of a namespace binds.
const Role = "paddock-site-secrets"

const (
	// Interval is the pause between two looks at a Secret that is not watched.
	Interval = time.Minute
	// RetryInterval is the pause before a Secret that is missing, or may not be read, is looked
	// for again.
	RetryInterval = 20 * time.Second
)

// Forbidden says what the owner of a namespace has to do. The controller's ServiceAccount is in
// the operator's namespace.
func Forbidden(namespace, operator string) string {
	return fmt.Sprintf("the controller may not use Secrets of namespace %q: bind ClusterRole %s to it there "+
		"(kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s:paddock-controller)",
		namespace, Role, Role, namespace, Role, operator)
}
