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

// resync is how often namespaces are looked at again that have not changed.
const resync = 10 * time.Minute

// admit keeps new objects out of namespaces that are not there or are going away.
// kube-apiserver's own admission does not see what it forwards.
func admit(generic *genericapiserver.RecommendedConfig, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	generic.SharedInformerFactory = informers.NewSharedInformerFactory(clients, resync)
	plugin, err := lifecycle.NewLifecycle(sets.New[string]())
	if err != nil {
		return fmt.Errorf("make the admission of namespaces: %w", err)
	}
	plugin.SetExternalKubeClientSet(clients)
	plugin.SetExternalKubeInformerFactory(generic.SharedInformerFactory)
	generic.AdmissionControl = plugin
	return nil
}
