package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
)

// namespaces deletes the contents of namespaces that are being deleted.
func (m *manager) namespaces(ctx context.Context) (controller, error) {
	config, err := m.builder.Config("namespace-controller")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		m.informers.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return func(ctx context.Context) { c.Run(ctx, 10) }, nil
}

// garbageCollector deletes objects whose owners are gone.
func (m *manager) garbageCollector(ctx context.Context) (controller, error) {
	const name = "generic-garbage-collector"
	client, err := m.builder.Client(name)
	if err != nil {
		return nil, err
	}
	config, err := m.builder.Config(name)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, m.metadata, m.mapper, garbagecollector.DefaultIgnoredResources(), m.objects, m.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, m.mapper, graph)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		go c.Sync(ctx, client.Discovery(), discoveryPeriod)
		c.Run(ctx, 20, discoveryPeriod)
	}, nil
}

// serviceAccounts creates the default service account of each namespace.
func (m *manager) serviceAccounts(ctx context.Context) (controller, error) {
	client, err := m.builder.Client("service-account-controller")
	if err != nil {
		return nil, err
	}
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), m.informers.Core().V1().ServiceAccounts(),
		m.informers.Core().V1().Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { c.Run(ctx, 1) }, nil
}

// quotas computes what ResourceQuotas count.
func (m *manager) quotas(ctx context.Context) (controller, error) {
	client, err := m.builder.Client("resourcequota-controller")
	if err != nil {
		return nil, err
	}
	kinds, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(m.informers.ForResource), m.informers)
	if err != nil {
		return nil, err
	}
	discover := client.Discovery().ServerPreferredNamespacedResources
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     m.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              pkgcontroller.StaticResyncPeriodFunc(5 * time.Minute),
		InformerFactory:           m.objects,
		ReplenishmentResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(resyncPeriod),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      kinds.IgnoredResources,
		InformersStarted:          m.started,
		Registry:                  generic.NewRegistry(kinds.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		go c.Sync(ctx, discover, discoveryPeriod)
		c.Run(ctx, 5)
	}, nil
}

// aggregatedRoles writes the rules of ClusterRoles such as admin, edit and view.
func (m *manager) aggregatedRoles(context.Context) (controller, error) {
	client, err := m.builder.Client("clusterrole-aggregation-controller")
	if err != nil {
		return nil, err
	}
	c := clusterroleaggregation.NewClusterRoleAggregation(m.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}
