package localcluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

const nameAPIServer = "kube-apiserver"

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// admissionWithoutControllers returns the admission plugins to turn off: those that need a controller
// which does not run. Without the controller, they have no use or refuse requests. cluster-controllers
// lacks only the controller that releases volumes.
func admissionWithoutControllers(opts Options) []string {
	const volumes = "StorageObjectInUseProtection"
	switch opts.controllersName() {
	case nameControllerManager:
		return nil
	case nameControllers:
		return []string{volumes}
	default:
		return []string{"ServiceAccount", "ResourceQuota", volumes}
	}
}

func apiServerCommand(opts Options, ports portSet, paths paths, pki pki, admin *rest.Config) (command, error) {
	cmd := command{name: nameAPIServer, args: []string{
		fmt.Sprintf("--secure-port=%d", ports.APIServer),
		"--tls-cert-file=" + pki.serving.certFile,
		"--tls-private-key-file=" + pki.serving.keyFile,
		"--etcd-servers=" + baseURL(ports.EtcdClient),
		"--etcd-cafile=" + pki.etcd.certFile,
		"--etcd-certfile=" + pki.etcdClient.certFile,
		"--etcd-keyfile=" + pki.etcdClient.keyFile,
		"--client-ca-file=" + pki.cluster.certFile,
		"--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + pki.serviceAccountKey,
		"--service-account-key-file=" + pki.serviceAccountKey,
		"--service-cluster-ip-range=" + serviceRange,
		"--requestheader-client-ca-file=" + pki.frontProxy.certFile,
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki.proxyClient.certFile,
		"--proxy-client-key-file=" + pki.proxyClient.keyFile,
		"--shutdown-send-retry-after", // without it, an open watch holds up the shutdown for 60 s
		"--profiling=false",
	}}
	cmd.args = append(cmd.args, opts.Node.apiServerArgs(pki)...)
	if off := admissionWithoutControllers(opts); len(off) > 0 {
		cmd.args = append(cmd.args, "--disable-admission-plugins="+strings.Join(off, ","))
	}
	if opts.AuditLog {
		if err := os.WriteFile(paths.auditPolicy(), []byte(auditPolicy), 0o600); err != nil {
			return cmd, fmt.Errorf("write audit policy: %w", err)
		}
		cmd.args = append(cmd.args,
			"--audit-policy-file="+paths.auditPolicy(),
			"--audit-log-path="+paths.auditLog(),
			"--audit-log-maxsize=100", "--audit-log-maxbackup=1",
		)
	}
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		return cmd, fmt.Errorf("prepare kube-apiserver's readiness check: %w", err)
	}
	cmd.ready = func(ctx context.Context) error { return apiServerReady(ctx, client, admin.Host) }
	return cmd, nil
}

// apiServerReady returns nil when kube-apiserver is ready and has the namespace default. /readyz does
// not wait for the namespace, but the programs that start next need it.
func apiServerReady(ctx context.Context, client *http.Client, url string) error {
	if err := getOK(ctx, client, url+"/readyz"); err != nil {
		return err
	}
	return getOK(ctx, client, url+"/api/v1/namespaces/default")
}
