package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var roleBindingResource = rbacv1.SchemeGroupVersion.WithResource("rolebindings")

// paddockRoles is the prefix of the names of Paddock's ClusterRoles.
const paddockRoles = "paddock-"

// checkBindings checks that callers of a site keep their rights when the site moves to another namespace:
// each subject that has a ClusterRole of Paddock by a RoleBinding in the former namespace must have it in
// the new one. If RoleBindings are missing, checkBindings creates them with create, and returns an error
// otherwise.
func (a *app) checkBindings(ctx context.Context, c *cluster, from, to string, create bool) error {
	before, err := c.roleBindings(ctx, from)
	if err != nil {
		return err
	}
	after, err := c.roleBindings(ctx, to)
	if err != nil {
		return err
	}
	var missing []string
	for i := range before {
		binding := &before[i]
		if binding.RoleRef.Kind != "ClusterRole" {
			a.say("RoleBinding %s/%s grants a Role of its namespace, which is not copied. Check that its subjects have the rights that they need in namespace %s.", from, binding.Name, to)
			continue
		}
		if !strings.HasPrefix(binding.RoleRef.Name, paddockRoles) {
			continue
		}
		lacking := slices.DeleteFunc(slices.Clone(binding.Subjects), func(subject rbacv1.Subject) bool {
			return slices.ContainsFunc(after, func(there rbacv1.RoleBinding) bool {
				return there.RoleRef == binding.RoleRef && slices.Contains(there.Subjects, subject)
			})
		})
		if len(lacking) == 0 {
			continue
		}
		if !create {
			missing = append(missing, fmt.Sprintf("%s (%s)", binding.Name, binding.RoleRef.Name))
			continue
		}
		name := freeName(after, binding.Name, from)
		if err := c.createBinding(ctx, to, name, binding.RoleRef, lacking); err != nil {
			return err
		}
		a.say("created RoleBinding %s/%s", to, name)
	}
	if len(missing) > 0 {
		return fmt.Errorf("namespace %s lacks subjects of these RoleBindings of namespace %s, who would lose their rights: %s; "+
			"create RoleBindings there, or add --copy-role-bindings", to, from, strings.Join(missing, ", "))
	}
	return nil
}

// freeName returns name if none of the RoleBindings has it. Otherwise it appends "-" and the former
// namespace (from), repeatedly if necessary, until no RoleBinding has the result.
func freeName(bindings []rbacv1.RoleBinding, name, from string) string {
	for slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool { return b.Name == name }) {
		name += "-" + from
	}
	return name
}

func (c *cluster) roleBindings(ctx context.Context, namespace string) ([]rbacv1.RoleBinding, error) {
	list, err := c.objects.Resource(roleBindingResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the RoleBindings of namespace %s: %w", namespace, err)
	}
	bindings := make([]rbacv1.RoleBinding, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &bindings[i]); err != nil {
			return nil, fmt.Errorf("read RoleBinding %s/%s: %w", namespace, list.Items[i].GetName(), err)
		}
	}
	return bindings, nil
}

func (c *cluster) createBinding(ctx context.Context, namespace, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    role, Subjects: subjects,
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(binding)
	if err != nil {
		return fmt.Errorf("encode RoleBinding %s/%s: %w", namespace, name, err)
	}
	_, err = c.objects.Resource(roleBindingResource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", namespace, name, err)
	}
	return nil
}
