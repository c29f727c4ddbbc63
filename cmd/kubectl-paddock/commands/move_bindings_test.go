package commands

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic/fake"
)

// TestCopyBindings copies a RoleBinding next to one with its name that has other subjects or another role.
func TestCopyBindings(t *testing.T) {
	binding := func(namespace, role string, users ...string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "staff"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		for _, user := range users {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		return b
	}
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{objects: fake.NewSimpleDynamicClient(scheme, binding("demo", "paddock-editor", "ann", "bob"), binding("clinic", "paddock-editor", "ann"))}
	a := &app{Options: Options{Streams: genericiooptions.IOStreams{ErrOut: &bytes.Buffer{}}}}
	if err := a.checkBindings(t.Context(), c, "demo", "clinic", true); err != nil {
		t.Fatal(err)
	}
	got, err := c.roleBindings(t.Context(), "clinic")
	if err != nil {
		t.Fatal(err)
	}
	users := map[string][]string{}
	for _, b := range got {
		for _, subject := range b.Subjects {
			users[b.Name] = append(users[b.Name], subject.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{"staff": {"ann"}, "staff-demo": {"bob"}}, users); diff != "" {
		t.Errorf("users by RoleBinding (-want +got):\n%s", diff)
	}
	if err := a.checkBindings(t.Context(), c, "demo", "clinic", false); err != nil {
		t.Errorf("after the copy: %v", err)
	}
}
