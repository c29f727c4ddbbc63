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
	// authenticationConfigMap, in kube-system, tells how kube-apiserver vouches for
	// the users whose requests it forwards.
	authenticationConfigMap = "extension-apiserver-authentication"
	// readInterval and readTimeout are how often, and how long each time, to try.
	readInterval = 250 * time.Millisecond
	readTimeout  = 5 * time.Second
)

// awaitAuthentication waits until the ConfigMap can be read. The API machinery
// tries once and gives up, but where a cluster or an installation is new, the
// ConfigMap or the right to read it may come a moment after this program.
func awaitAuthentication(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.Timeout = readTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
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
