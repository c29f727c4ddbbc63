package aggregated

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// resync is how often the informer of namespaces processes unchanged namespaces again.
const resync = 10 * time.Minute

// admit sets the informers and the admission plugin of generic. The plugin refuses new objects in
// namespaces that do not exist or are terminating. kube-apiserver does not run admission for the
// requests that it forwards.
func admit(generic *genericapiserver.RecommendedConfig, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("configure the client of kube-apiserver: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of kube-apiserver: %w", err)
	}
	generic.SharedInformerFactory = informers.NewSharedInformerFactory(clients, resync)
	plugin, err := lifecycle.NewLifecycle(sets.New[string]())
	if err != nil {
		return fmt.Errorf("create the admission plugin for namespaces: %w", err)
	}
	plugin.SetExternalKubeClientSet(clients)
	plugin.SetExternalKubeInformerFactory(generic.SharedInformerFactory)
	generic.AdmissionControl = plugin
	return nil
}
