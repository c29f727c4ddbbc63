package aggregated

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// authenticationConfigMap, in kube-system, has the settings with which kube-apiserver
	// authenticates forwarded requests.
	authenticationConfigMap = "extension-apiserver-authentication"
	// readInterval is the pause between reads of the ConfigMap, readTimeout the time limit of one.
	readInterval = 250 * time.Millisecond
	readTimeout  = 5 * time.Second
)

// awaitAuthentication blocks until the ConfigMap can be read. The API machinery tries only once. In
// a new cluster or installation, the ConfigMap or the right to read it may be created after this
// process starts.
func awaitAuthentication(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("configure the client of kube-apiserver: %w", err)
	}
	config.Timeout = readTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of kube-apiserver: %w", err)
	}
	told := false
	return wait.PollUntilContextCancel(ctx, readInterval, true, func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
		if err != nil && !told {
			slog.WarnContext(ctx, "the aggregated API waits for the front proxy's configuration", "configMap", authenticationConfigMap, "error", err)
			told = true
		}
		return err == nil, nil
	})
}
