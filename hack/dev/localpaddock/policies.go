package localpaddock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

const (
	// policyInterval is the pause between two probes of a policy.
	policyInterval = 50 * time.Millisecond
	// policyTimeout limits the wait for one policy. kube-apiserver loads policies once a second. It can
	// take 30 s more to find the kind of a policy's parameters, if that kind is a new custom resource.
	policyTimeout = 2 * time.Minute
	// probeName names what the probes create.
	probeName = "policy-probe"
)

// callers has the clients that send probes. controller and apiServer have only the rights of
// config/rbac, so that a policy sees their probes only when these rights are in effect too. probe may
// only edit objects in the namespace default.
type callers struct{ admin, controller, apiServer, probe dynamic.Interface }

// probes are requests by the name of the policy that must refuse them. The refused requests are dry
// runs, so that they change nothing while the policy is not yet enforced. Some probes first make an
// object or a label that their policy needs; AwaitPolicies removes these.
var probes = map[string]func(context.Context, callers) error{
	"paddock-controller-exposure": func(ctx context.Context, c callers) error {
		return create(ctx, c.controller, "ingresses", `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: paddock-system, name: policy-probe}
spec: {defaultBackend: {service: {name: policy-probe, port: {number: 80}}}}`, metav1.DryRunAll)
	},
	"paddock-controller-namespaces": func(ctx context.Context, c callers) error {
		return label(ctx, c.controller, probeName)
	},
	"paddock-records": func(ctx context.Context, c callers) error {
		return create(ctx, c.admin, "recordclaims", `
apiVersion: records.paddock.health/v1alpha1
kind: RecordClaim
metadata: {namespace: default, name: policy-probe}
spec: {siteKey: policy-probe, line: policy-probe}`, metav1.DryRunAll)
	},
	// The policy refuses only in a namespace with the label. The probe uses kube-public, because
	// another probe needs the namespace default without the label.
	"paddock-moved-records": func(ctx context.Context, c callers) error {
		if err := labelFenced(ctx, c.admin, `"true"`); err != nil {
			return err
		}
		return create(ctx, c.apiServer, "recordclaims", `
apiVersion: records.paddock.health/v1alpha1
kind: RecordClaim
metadata: {namespace: kube-public, name: policy-probe}
spec: {siteKey: policy-probe, line: policy-probe}`, metav1.DryRunAll)
	},
	// The policy refuses only while there is a SiteClaim.
	"paddock-retained-crds": func(ctx context.Context, c callers) error {
		err := create(ctx, c.admin, "siteclaims", `
apiVersion: paddock.health/v1alpha1
kind: SiteClaim
metadata: {name: policy-probe}
spec: {siteKey: policy-probe, siteRef: {namespace: policy-probe, name: policy-probe, uid: policy-probe}}`)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		return c.admin.Resource(definitions).Delete(ctx, "siteclaims.paddock.health", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	},
	"paddock-retained-namespaces": func(ctx context.Context, c callers) error {
		return label(ctx, c.admin, "paddock.health/retain")
	},
	"paddock-secrets": func(ctx context.Context, c callers) error {
		const secret = "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: policy-probe}}"
		if err := create(ctx, c.apiServer, "secrets", secret, metav1.DryRunAll); !deniedBy("paddock-secrets", err) {
			return err
		}
		return create(ctx, c.controller, "secrets", secret, metav1.DryRunAll)
	},
	"paddock-webhook-clearance": func(ctx context.Context, c callers) error {
		err := create(ctx, c.admin, "rolebindings", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: default, name: policy-probe}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: policy-probe}]`)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return create(ctx, c.probe, "webhooks", `
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {namespace: default, name: policy-probe}
spec: {eventType: user.created, url: "https://policy-probe.invalid/", active: false, clearance: Privileged}`, metav1.DryRunAll)
	},
}

// AwaitPolicies returns when kube-apiserver enforces every ValidatingAdmissionPolicy that is bound,
// and the rights of Paddock's programs are in effect. kube-apiserver loads policies some time after it
// has stored them. Until then, it admits requests that they refuse.
//
// The policies are those of config/base. A policy without a probe is an error.
func AwaitPolicies(ctx context.Context, cluster *localcluster.Cluster) error {
	c, err := newCallers(cluster)
	if err != nil {
		return err
	}
	bindings := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	bound, err := c.admin.Resource(bindings).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the bindings of admission policies: %w", err)
	}
	for _, binding := range bound.Items {
		policy, _, err := unstructured.NestedString(binding.Object, "spec", "policyName")
		if err == nil {
			err = awaitPolicy(ctx, c, policy)
		}
		if err != nil {
			return fmt.Errorf("wait for the admission policy of binding %s: %w", binding.GetName(), err)
		}
	}
	claims := schema.GroupVersionResource{Group: "paddock.health", Version: "v1alpha1", Resource: "siteclaims"}
	if err := c.admin.Resource(claims).Delete(ctx, probeName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the SiteClaim of the probes: %w", err)
	}
	if err := labelFenced(ctx, c.admin, "null"); err != nil {
		return fmt.Errorf("remove the label of the probes: %w", err)
	}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	if err := c.admin.Resource(roles).Namespace("default").Delete(ctx, probeName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the RoleBinding of the probes: %w", err)
	}
	return nil
}

func awaitPolicy(ctx context.Context, c callers, policy string) error {
	probe, ok := probes[policy]
	if !ok {
		return fmt.Errorf("no probe for policy %q: add a request that it must refuse to hack/dev/localpaddock/policies.go", policy)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, policyInterval, policyTimeout, true, func(ctx context.Context) (bool, error) {
		last = probe(ctx, c)
		return deniedBy(policy, last), nil
	})
	if err != nil {
		return fmt.Errorf("policy %s does not refuse its probe: %w", policy, errors.Join(err, last))
	}
	return nil
}

// deniedBy reports whether err is a refusal by the policy. It compares the message, because refusals
// by RBAC have the same status.
func deniedBy(policy string, err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding ")
}

func newCallers(cluster *localcluster.Cluster) (callers, error) {
	clients := make([]dynamic.Interface, 4)
	config := cluster.Config()
	for i, name := range []string{"", "paddock-controller", "paddock-apiserver", probeName} {
		var err error
		switch name {
		case "":
		case probeName:
			config, err = cluster.UserConfig(probeName, "system:authenticated")
		default:
			config, err = accountConfig(cluster, name)
		}
		if err != nil {
			return callers{}, err
		}
		if clients[i], err = dynamic.NewForConfig(config); err != nil {
			return callers{}, fmt.Errorf("create a client of kube-apiserver: %w", err)
		}
	}
	return callers{clients[0], clients[1], clients[2], clients[3]}, nil
}

func create(ctx context.Context, c dynamic.Interface, resource, manifest string, dryRun ...string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), object); err != nil {
		return fmt.Errorf("parse the manifest of a probe: %w", err)
	}
	resources := c.Resource(object.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(object.GetNamespace())
	_, err := resources.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// label sets a label of the namespace default, as a dry run.
func label(ctx context.Context, c dynamic.Interface, name string) error {
	return patchLabel(ctx, c, "default", name, `"true"`, metav1.DryRunAll)
}

// labelFenced sets the label of a namespace whose records are fenced on the namespace kube-public, or
// removes it if value is null.
func labelFenced(ctx context.Context, c dynamic.Interface, value string) error {
	return patchLabel(ctx, c, "kube-public", "paddock.health/records-fenced", value)
}

// patchLabel sets a label of a namespace to a JSON value.
func patchLabel(ctx context.Context, c dynamic.Interface, namespace, name, value string, dryRun ...string) error {
	patch := `{"metadata":{"labels":{"` + name + `":` + value + `}}}`
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, err := c.Resource(namespaces).Patch(ctx, namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
	return err
}
