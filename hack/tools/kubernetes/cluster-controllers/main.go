// Command cluster-controllers runs the controllers of kube-controller-manager that a control plane
// without nodes needs: they end namespaces, collect garbage, compute quotas, create default service
// accounts and aggregate ClusterRoles. `make run` uses it, because it is built much faster than
// kube-controller-manager, which has the controllers of pods and volumes too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
)

const (
	// resyncPeriod and the periods and workers of the controllers are the defaults of
	// kube-controller-manager.
	resyncPeriod = 12 * time.Hour
	// discoveryPeriod is the interval at which new kinds are discovered.
	discoveryPeriod = 30 * time.Second
	// qps and burst are per controller. The control plane serves this machine only.
	qps, burst = 1000, 1000
)

// manager holds what the controllers share.
type manager struct {
	builder   clientbuilder.ControllerClientBuilder
	metadata  metadata.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	informers informers.SharedInformerFactory
	objects   informerfactory.InformerFactory
	// started is closed when the informers have been started.
	started chan struct{}
}

// controller runs until its context is done.
type controller func(context.Context)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file with the credentials of kube-controller-manager")
	klog.InitFlags(nil)
	flag.Parse()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "cluster-controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	if kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	m, err := newManager(ctx, config)
	if err != nil {
		return err
	}
	var controllers []controller
	for _, add := range []func(context.Context) (controller, error){m.namespaces, m.garbageCollector, m.serviceAccounts, m.quotas, m.aggregatedRoles} {
		c, err := add(ctx)
		if err != nil {
			return err
		}
		controllers = append(controllers, c)
	}
	m.informers.Start(ctx.Done())
	m.objects.Start(ctx.Done())
	close(m.started)
	for _, c := range controllers {
		go c(ctx)
	}
	<-ctx.Done()
	return nil
}

// newManager gives each controller the rights of a service account of its own, as kube-controller-manager does with
// --use-service-account-credentials.
func newManager(ctx context.Context, config *rest.Config) (*manager, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	go wait.Until(mapper.Reset, discoveryPeriod, ctx.Done())
	typed := informers.NewSharedInformerFactory(client, resyncPeriod)
	return &manager{
		builder:   clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), client.CoreV1(), "kube-system"),
		metadata:  metadataClient,
		mapper:    mapper,
		informers: typed,
		objects:   informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactory(metadataClient, resyncPeriod)),
		started:   make(chan struct{}),
	}, nil
}
