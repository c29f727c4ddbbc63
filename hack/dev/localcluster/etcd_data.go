package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// EtcdDatabase returns the path of the file in which etcd keeps its keys and values. Its
// write-ahead log is elsewhere.
func (c *Cluster) EtcdDatabase() string {
	return filepath.Join(c.paths.etcdData(), "member", "snap", "db")
}

// CompactEtcd removes all revisions before the current one from etcd, and defragments its database,
// as "etcdctl compact --physical" and "etcdctl defrag" do.
func (c *Cluster) CompactEtcd(ctx context.Context) error {
	client, err := c.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var status struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := c.callEtcd(ctx, client, "/v3/maintenance/status", "{}", &status); err != nil {
		return err
	}
	if err := c.callEtcd(ctx, client, "/v3/kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, status.Header.Revision), nil); err != nil {
		return err
	}
	return c.callEtcd(ctx, client, "/v3/maintenance/defragment", "{}", nil)
}

// SetFull sets or removes the alarm that etcd raises when its quota is exhausted. While the alarm
// is set, etcd refuses writes and answers reads.
func (c *Cluster) SetFull(ctx context.Context, full bool) error {
	client, err := c.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	action := "DEACTIVATE"
	if full {
		action = "ACTIVATE"
	}
	return c.callEtcd(ctx, client, "/v3/maintenance/alarm", fmt.Sprintf(`{"action":%q,"alarm":"NOSPACE"}`, action), nil)
}

// SaveEtcd writes a snapshot of etcd to file, as "etcdctl snapshot save" does. "etcdutl snapshot
// restore" makes a data directory of it.
func (c *Cluster) SaveEtcd(ctx context.Context, file string) error {
	client, err := c.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	response, err := c.postEtcd(ctx, client, "/v3/maintenance/snapshot", "{}")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the caller has read what it needs
	var snapshot []byte
	for chunks := json.NewDecoder(response.Body); ; {
		var chunk struct {
			Result struct {
				Blob []byte `json:"blob"`
			} `json:"result"`
			Error json.RawMessage `json:"error"`
		}
		if err := chunks.Decode(&chunk); errors.Is(err, io.EOF) {
			return os.WriteFile(file, snapshot, 0o600)
		} else if err != nil {
			return fmt.Errorf("read a snapshot of etcd: %w", err)
		}
		if chunk.Error != nil {
			return fmt.Errorf("read a snapshot of etcd: %s", chunk.Error)
		}
		snapshot = append(snapshot, chunk.Result.Blob...)
	}
}

// etcdClient returns an HTTP client with the client certificate of etcd.
func (c *Cluster) etcdClient() (*http.Client, error) {
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: c.pki.etcd.certFile, CertFile: c.pki.etcdClient.certFile, KeyFile: c.pki.etcdClient.keyFile,
	}})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return client, nil
}

// callEtcd calls a method of etcd through its JSON gateway. answer may be nil.
func (c *Cluster) callEtcd(ctx context.Context, client *http.Client, path, body string, answer any) error {
	response, err := c.postEtcd(ctx, client, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the caller has read what it needs
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the response of etcd: %w", err)
	}
	return nil
}

// postEtcd sends a request to the JSON gateway of etcd. The response has the status 200, and the caller
// closes its body.
func (c *Cluster) postEtcd(ctx context.Context, client *http.Client, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call etcd: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("call etcd: %s responded with status %d", path, response.StatusCode), response.Body.Close())
	}
	return response, nil
}
