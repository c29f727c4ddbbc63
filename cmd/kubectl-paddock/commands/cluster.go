package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// The resources of paddock.health that the commands read.
var (
	siteResource    = v1alpha1.GroupVersion.WithResource("sites")
	webhookResource = v1alpha1.GroupVersion.WithResource("webhooks")
)

// listPage is the number of objects that a request to kube-apiserver returns at most.
const listPage = 500

// cluster has the clients of kube-apiserver.
type cluster struct {
	typed   kubernetes.Interface
	objects dynamic.Interface
}

// connect returns the clients for the cluster of the flags. It sends no request.
func (a *app) connect() (*cluster, error) {
	config, err := a.kube.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster by --kubeconfig or $KUBECONFIG: %w", err)
	}
	config.QPS = -1 // kube-apiserver limits the rate
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of kube-apiserver at %s: %w", config.Host, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a dynamic client of kube-apiserver at %s: %w", config.Host, err)
	}
	return &cluster{typed, objects}, nil
}

// namespace returns the namespace of the flags or of the kubeconfig's context.
func (a *app) namespace() (string, error) {
	namespace, _, err := a.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("find the namespace by --namespace or the kubeconfig: %w", err)
	}
	return namespace, nil
}

// sites returns the Sites of a namespace, or of all namespaces if namespace is empty.
func (c *cluster) sites(ctx context.Context, namespace string) ([]v1alpha1.Site, error) {
	var sites []v1alpha1.Site
	err := c.each(ctx, siteResource.Resource, namespace, func(object *unstructured.Unstructured) error {
		var site v1alpha1.Site
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &site)
		sites = append(sites, site)
		return err
	})
	return sites, err
}

// webhooks returns the Webhooks of a namespace, or of all namespaces if namespace is empty.
func (c *cluster) webhooks(ctx context.Context, namespace string) ([]v1alpha1.Webhook, error) {
	var hooks []v1alpha1.Webhook
	err := c.each(ctx, webhookResource.Resource, namespace, func(object *unstructured.Unstructured) error {
		var hook v1alpha1.Webhook
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &hook)
		hooks = append(hooks, hook)
		return err
	})
	return hooks, err
}

// each calls do for the objects of a resource of paddock.health, page by page.
func (c *cluster) each(ctx context.Context, resource, namespace string, do func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: listPage}
	for {
		page, err := c.objects.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return fmt.Errorf("read %s %s/%s: %w", resource, page.Items[i].GetNamespace(), page.Items[i].GetName(), err)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// site returns the Site with a name in the namespace of the flags.
func (a *app) site(ctx context.Context, c *cluster, name string) (*v1alpha1.Site, error) {
	namespace, err := a.namespace()
	if err != nil {
		return nil, err
	}
	object, err := c.objects.Resource(siteResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get Site %s/%s: %w", namespace, name, err)
	}
	site := &v1alpha1.Site{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, site); err != nil {
		return nil, fmt.Errorf("read Site %s/%s: %w", namespace, name, err)
	}
	return site, nil
}

// completeSites completes the first argument with the names of Sites.
func (a *app) completeSites(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeObjects(command.Context(), siteResource.Resource, typed)
}

// completeWebhooks completes the first argument with the names of Sites, the second with those of
// Webhooks.
func (a *app) completeWebhooks(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeSites(command, args, typed)
	}
	return a.completeObjects(command.Context(), webhookResource.Resource, typed)
}

// completeObjects returns the names that begin with typed, of a resource of paddock.health in the
// namespace of the flags.
func (a *app) completeObjects(ctx context.Context, resource, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	namespace, err := a.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	err = c.each(ctx, resource, namespace, func(object *unstructured.Unstructured) error {
		if strings.HasPrefix(object.GetName(), typed) {
			names = append(names, object.GetName())
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeNamespaces(command *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := c.typed.CoreV1().Namespaces().List(command.Context(), metav1.ListOptions{Limit: listPage})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, typed) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
