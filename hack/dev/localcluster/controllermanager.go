package localcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

const nameControllerManager = "kube-controller-manager"

// controllerManagerCommand gives every controller a service account of its own, as in any
// real cluster: aggregated API servers then see who is asking.
func controllerManagerCommand(opts Options, paths paths, pki pki, ports portSet, admin *rest.Config) (command, error) {
	kubeconfig := paths.config(nameControllerManager)
	cmd := command{name: nameControllerManager, args: []string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + pki.serviceAccountKey,
		"--root-ca-file=" + pki.cluster.certFile,
		"--flex-volume-plugin-dir=" + paths.flexVolumes(),
	}}
	cmd.args = append(cmd.args, opts.Node.controllerManagerArgs()...)
	config, err := pki.clientConfig(ports.APIServer, pki.controllerManager)
	if err != nil {
		return cmd, err
	}
	if err := WriteKubeconfig(kubeconfig, config); err != nil {
		return cmd, err
	}
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		return cmd, fmt.Errorf("prepare kube-controller-manager's readiness check: %w", err)
	}
	// Its health endpoint answers before its controllers work; this account is the work of one.
	account := admin.Host + "/api/v1/namespaces/default/serviceaccounts/default"
	cmd.ready = func(ctx context.Context) error { return getOK(ctx, client, account) }
	return cmd, nil
}
