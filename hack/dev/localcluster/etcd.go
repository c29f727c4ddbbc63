package localcluster

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

const (
	nameEtcd   = "etcd"
	etcdMember = "paddock-local"
	// etcdQuota is the size in bytes from which etcd refuses writes. It equals etcd's default.
	etcdQuota = 2 << 30
)

func etcdCommand(opts Options, ports portSet, paths paths, pki pki) (command, error) {
	client, peer := baseURL(ports.EtcdClient), baseURL(ports.EtcdPeer)
	cmd := command{name: nameEtcd, args: []string{
		"--name=" + etcdMember,
		"--data-dir=" + paths.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + etcdMember + "=" + peer,
		"--cert-file=" + pki.etcdServer.certFile,
		"--key-file=" + pki.etcdServer.keyFile,
		"--trusted-ca-file=" + pki.etcd.certFile,
		"--client-cert-auth",
		"--peer-cert-file=" + pki.etcdServer.certFile,
		"--peer-key-file=" + pki.etcdServer.keyFile,
		"--peer-trusted-ca-file=" + pki.etcd.certFile,
		"--peer-client-cert-auth",
		fmt.Sprintf("--quota-backend-bytes=%d", etcdQuota),
		fmt.Sprintf("--unsafe-no-fsync=%t", opts.UnsafeNoFsync),
	}}
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: pki.etcd.certFile, CertFile: pki.etcdClient.certFile, KeyFile: pki.etcdClient.keyFile,
	}}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return cmd, fmt.Errorf("prepare etcd's readiness check: %w", err)
	}
	cmd.ready = func(ctx context.Context) error { return getOK(ctx, httpClient, client+"/readyz") }
	return cmd, nil
}

// getOK is a readiness check: nil when url answers 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true // a connection kept alive would hold up the server's shutdown
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
