package localcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

const (
	nameControllerManager = "kube-controller-manager"
	// nameControllers is the program of hack/tools/kubernetes/cluster-controllers.
	nameControllers = "cluster-controllers"
)

// controllerManagerCommand returns the command of the controllers, and writes their kubeconfig. In
// kube-controller-manager, each controller uses a service account of its own, as in a real cluster, so
// that aggregated API servers see which controller sends a request.
func controllerManagerCommand(opts Options, paths paths, pki pki, ports portSet, admin *rest.Config) (command, error) {
	name := opts.controllersName()
	kubeconfig := paths.config(name)
	cmd := command{name: name, args: []string{"--kubeconfig=" + kubeconfig}}
	if name == nameControllerManager {
		cmd.args = append(cmd.args,
			"--secure-port=0",
			"--leader-elect=false",
			"--kube-api-qps=1000",
			"--kube-api-burst=1000",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+pki.serviceAccountKey,
			"--root-ca-file="+pki.cluster.certFile,
			"--flex-volume-plugin-dir="+paths.flexVolumes(),
		)
		cmd.args = append(cmd.args, opts.Node.controllerManagerArgs()...)
	}
	config, err := pki.clientConfig(ports.APIServer, pki.controllerManager)
	if err != nil {
		return cmd, err
	}
	if err := WriteKubeconfig(kubeconfig, config); err != nil {
		return cmd, err
	}
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		return cmd, fmt.Errorf("prepare the readiness check of %s: %w", name, err)
	}
	// The health endpoint responds before the controllers work. One of them creates this service
	// account.
	account := admin.Host + "/api/v1/namespaces/default/serviceaccounts/default"
	cmd.ready = func(ctx context.Context) error { return getOK(ctx, client, account) }
	return cmd, nil
}
