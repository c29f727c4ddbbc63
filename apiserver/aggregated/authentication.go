package aggregated

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// authenticationConfigMap, in kube-system, has the settings with which kube-apiserver
	// authenticates forwarded requests.
	authenticationConfigMap = "extension-apiserver-authentication"
	// readInterval is the pause between reads of the ConfigMap, readTimeout the time limit of one
	// read.
	readInterval = 250 * time.Millisecond
	readTimeout  = 5 * time.Second
)

// authorityKeys are the keys in the ConfigMap under which it has the certificate authorities of the
// front proxy and of other clients.
var authorityKeys = []string{"requestheader-client-ca-file", "client-ca-file"}

// awaitAuthentication blocks until the ConfigMap can be read. The API machinery tries only once. In
// a new cluster or installation, the ConfigMap or the right to read it may be created after this
// process starts.
func awaitAuthentication(ctx context.Context, kubeconfig string) error {
	return pollAuthentication(ctx, kubeconfig, func(map[string]string) bool { return true })
}

// pollAuthentication reads the ConfigMap until done returns true for its data.
func pollAuthentication(ctx context.Context, kubeconfig string, done func(map[string]string) bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("configure the client of kube-apiserver: %w", err)
	}
	config.Timeout = readTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of kube-apiserver: %w", err)
	}
	warned := false
	return wait.PollUntilContextCancel(ctx, readInterval, true, func(ctx context.Context) (bool, error) {
		read, err := clients.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
		if err != nil {
			if !warned {
				slog.WarnContext(ctx, "the aggregated API waits until the front proxy's configuration can be read", "namespace", metav1.NamespaceSystem, "configMap", authenticationConfigMap, "error", err)
				warned = true
			}
			return false, nil
		}
		return done(read.Data), nil
	})
}

// followAuthorities starts the watch of the certificate authorities of clients, and blocks until
// the current authorities are loaded. By default, the API machinery starts this watch only when it
// serves already. Until the authorities are loaded, the API machinery takes requests of the front
// proxy for anonymous requests and answers 403. If only one authority is loaded, the server asks
// clients for certificates of that authority alone. The front proxy then sends no certificate, and
// reuses the connection without one.
func followAuthorities(ctx context.Context, secure *genericapiserver.SecureServingInfo, kubeconfig string) error {
	authorities := secure.ClientCA
	follower, ok := authorities.(dynamiccertificates.ControllerRunner)
	if !ok {
		return fmt.Errorf("the certificate authorities of clients (%s) cannot be watched", authorities.Name()) //nolint:err113 // a library that changed
	}
	go follower.Run(ctx, 1)
	secure.ClientCA = followed{authorities}
	return pollAuthentication(ctx, kubeconfig, func(data map[string]string) bool {
		known := authorities.CurrentCABundleContent()
		for _, key := range authorityKeys {
			if !bytes.Contains(known, bytes.TrimSpace([]byte(data[key]))) {
				return false
			}
		}
		return true
	})
}

// followed hides the methods of certificate authorities that start their watch, because
// followAuthorities has started it.
type followed struct {
	dynamiccertificates.CAContentProvider
}
