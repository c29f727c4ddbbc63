package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"github.com/paddock-health/paddock/hack/dev/localpaddock"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

//go:embed webhooks.yaml
var webhooks string

// writeInterval is how often received events are written to their file.
const writeInterval = 200 * time.Millisecond

// receiver gets the events of the demo's webhooks and appends them to a file.
type receiver struct {
	server *localreceiver.Receiver
	cancel context.CancelFunc
	done   chan struct{}
}

// startReceiver starts a receiver and applies the webhooks that send to it. The address of the
// receiver changes with each run, so the webhooks are applied each time.
func startReceiver(ctx context.Context, paddock *localpaddock.Paddock, namespace, dir string) (*receiver, error) {
	file, err := os.OpenFile(filepath.Join(dir, "received.ndjson"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &receiver{server: localreceiver.Start(), cancel: cancel, done: make(chan struct{})}
	go r.write(ctx, file)
	if err := r.apply(ctx, paddock, namespace, dir); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *receiver) apply(ctx context.Context, paddock *localpaddock.Paddock, namespace, dir string) error {
	var manifest bytes.Buffer
	values := map[string]string{"Namespace": namespace, "URL": r.server.URL, "CABundle": r.server.CABundle()}
	if err := template.Must(template.New("webhooks").Parse(webhooks)).Execute(&manifest, values); err != nil {
		return err
	}
	path := filepath.Join(dir, "webhooks.yaml")
	if err := os.WriteFile(path, manifest.Bytes(), 0o600); err != nil {
		return err
	}
	_, err := paddock.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--filename", path)
	return err
}

// write appends what was received to a file, which it closes at the end.
func (r *receiver) write(ctx context.Context, file *os.File) {
	defer close(r.done)
	defer file.Close()
	for {
		for _, delivery := range r.server.Take() {
			line, err := json.Marshal(map[string]any{"receivedAt": delivery.At, "event": delivery.Event})
			if err == nil {
				_, err = file.Write(append(line, '\n'))
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "run: write a received event:", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(writeInterval):
		}
	}
}

func (r *receiver) close() {
	r.cancel()
	<-r.done
	r.server.Close()
}
