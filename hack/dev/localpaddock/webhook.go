package localpaddock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// localhost is the host name at which kube-apiserver, on the same machine, calls the controller's
// webhook server. It is also a name in the server's certificate.
const localhost = "localhost"

// webhookArgs returns the flags by which a controller serves its webhooks on a port.
func webhookArgs(port int) []string {
	return []string{"--webhook-address", "127.0.0.1:" + strconv.Itoa(port), "--webhook-certificate-names", localhost}
}

// RegisterWebhook registers the admission webhook of the first controller, as config/default does, but
// with its address on this machine. The webhook works once the controller has added its certificate to
// the registration.
func (p *Paddock) RegisterWebhook(ctx context.Context) error {
	manifests, err := os.ReadFile(filepath.Join(p.options.SourceDir, "config", "default", "webhook.yaml"))
	if err != nil {
		return err
	}
	configuration := admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, manifest := range strings.Split(string(manifests), "\n---\n") {
		if !strings.Contains(manifest, "\nkind: ValidatingWebhookConfiguration\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(manifest), &configuration); err != nil {
			return fmt.Errorf("read config/default/webhook.yaml: %w", err)
		}
	}
	for i := range configuration.Webhooks {
		client := &configuration.Webhooks[i].ClientConfig
		address := fmt.Sprintf("https://%s:%d%s", localhost, p.webhookPort, *client.Service.Path)
		client.Service, client.URL = nil, &address
	}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("write the registration of the webhook: %w", err)
	}
	file := p.cluster.File("webhook.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	_, err = p.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--filename", file)
	return err
}
