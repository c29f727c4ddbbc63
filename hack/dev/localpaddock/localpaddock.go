// Package localpaddock runs Paddock's own programs next to a local control plane, with the rights that
// they have on a cluster. `make run`, the acceptance tests and the benchmarks use it.
package localpaddock

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/hack/dev/freeport"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// localNetworks are the addresses at which databases and issuers may be. Loopback is allowed, unlike
// on a cluster, because databases and issuers run on this machine.
const localNetworks = "127.0.0.0/8"

// receiverNetworks are the addresses at which receivers of webhooks may be, in addition to public
// ones. It is one address, so that tests can show that other loopback addresses are refused.
const receiverNetworks = "127.0.0.1/32"

// pageTokenSecret is the Secret in which the controller stores the keys of page tokens, holds and
// calendar feeds.
const pageTokenSecret = "paddock-page-token-key"

const (
	// pageTokenTimeout limits the wait until the controller has made the keys, and pageTokenInterval
	// is the pause between two checks. After a crash, the controller first waits up to 15 s for the
	// lease of its predecessor to expire.
	pageTokenInterval = 50 * time.Millisecond
	pageTokenTimeout  = time.Minute
)

// Options say what to run.
type Options struct {
	// BinDir holds the programs and kubectl, SourceDir the repository's config/.
	BinDir, SourceDir string
	// Controllers, APIServers and Deliveries are the numbers of controllers, API servers and delivery
	// processes to run. Default: one of each. A negative number of Deliveries means none.
	Controllers, APIServers, Deliveries int
	// Port is the port of the first API server on 127.0.0.1. 0 means a free port.
	Port int
	// PublicURL is the beginning of links in responses. Default: the address of the first API server.
	PublicURL string
	// Aggregated makes the first API server serve the aggregated API too, and
	// kube-apiserver forward requests to it.
	Aggregated bool
	// APIServerBinary is the name of the API server's program in BinDir. Default: apiserver.
	APIServerBinary string
	// APIServerArgs are added for every API server, and APIServerEnv for those that Start starts.
	// ControllerArgs are added for every controller, DeliveryArgs for every delivery process.
	APIServerArgs, APIServerEnv, ControllerArgs, DeliveryArgs []string
}

// Paddock is a running installation.
type Paddock struct {
	options     Options
	cluster     *localcluster.Cluster
	Controllers []*localcluster.Process
	APIServers  []*localcluster.Process
	Deliveries  []*localcluster.Process
	// URLs are the addresses of the API servers, HealthURLs those of their /readyz and /metrics,
	// ControllerURLs those of the controllers' /metrics, DeliveryURLs those of /readyz and /metrics of
	// the delivery processes.
	URLs, HealthURLs, ControllerURLs, DeliveryURLs []string

	aggregation *aggregation // nil: none
	// started counts the API servers, and deliveries the delivery processes. The numbers are part of
	// their names, which must be unique.
	started, deliveries int
	// webhookPort is the port of the webhook server of the first controller.
	webhookPort int
}

// Start installs the CRDs, roles and admission policies of config/base and, once
// kube-apiserver enforces these, starts the programs. It returns when they serve.
// They end with the cluster.
func Start(ctx context.Context, cluster *localcluster.Cluster, options Options) (*Paddock, error) {
	options.Controllers, options.APIServers = max(options.Controllers, 1), max(options.APIServers, 1)
	if options.Deliveries == 0 {
		options.Deliveries = 1
	}
	if options.APIServerBinary == "" {
		options.APIServerBinary = "apiserver"
	}
	p := &Paddock{options: options, cluster: cluster}
	if err := p.Apply(ctx, filepath.Join("config", "base")); err != nil {
		return nil, err
	}
	if err := AwaitPolicies(ctx, cluster); err != nil { // policies.go
		return nil, err
	}
	ports, err := freeport.Choose(2*options.APIServers + 3*options.Controllers + 1)
	if err != nil {
		return nil, err
	}
	if options.Port != 0 {
		ports[0] = options.Port
	}
	if p.options.PublicURL == "" {
		p.options.PublicURL = address(ports[0])
	}
	if options.Aggregated {
		if p.aggregation, err = p.newAggregation(ports[len(ports)-1]); err != nil {
			return nil, err
		}
	}
	// This comes before the start of the controller, which writes its certificate into the
	// registration when it starts, and then only once a minute.
	p.webhookPort = ports[2*options.APIServers+2]
	if err := p.RegisterWebhook(ctx); err != nil { // webhook.go
		return nil, err
	}
	for i := range options.Controllers {
		first := 2*options.APIServers + 3*i
		if err := p.startController(ctx, i, ports[first], ports[first+1], ports[first+2]); err != nil {
			return nil, err
		}
	}
	if err := p.writeKeys(ctx); err != nil {
		return nil, err
	}
	for i := range options.APIServers {
		if err := p.startAPIServer(ctx, options.APIServerBinary, options.APIServerEnv, ports[i], ports[options.APIServers+i]); err != nil {
			return nil, err
		}
	}
	for range options.Deliveries {
		if err := p.AddDelivery(ctx, options.APIServerBinary); err != nil {
			return nil, err
		}
	}
	if p.aggregation != nil {
		return p, p.aggregation.register(ctx, p)
	}
	return p, nil
}

// AddAPIServer starts one more API server, from the program binary and with env added to its
// environment. It appends the process to APIServers.
func (p *Paddock) AddAPIServer(ctx context.Context, binary string, env ...string) error {
	ports, err := freeport.Choose(2)
	if err != nil {
		return err
	}
	return p.startAPIServer(ctx, binary, env, ports[0], ports[1])
}

// AddDelivery starts one more delivery process, from the program binary, a build of the API server,
// and with env added to its environment. It appends the process to Deliveries.
func (p *Paddock) AddDelivery(ctx context.Context, binary string, env ...string) error {
	ports, err := freeport.Choose(1)
	if err != nil {
		return err
	}
	kubeconfig, err := p.kubeconfig("paddock-delivery")
	if err != nil {
		return err
	}
	health := "127.0.0.1:" + strconv.Itoa(ports[0])
	process, err := p.cluster.StartProgram(ctx, localcluster.Program{
		Name: p.programName("delivery", p.deliveries),
		Path: filepath.Join(p.options.BinDir, binary),
		Args: append([]string{
			"--serve", "delivery",
			"--kubeconfig", kubeconfig,
			"--health-address", health,
			"--postgres-networks", localNetworks,
			"--webhook-networks", receiverNetworks,
		}, p.options.DeliveryArgs...),
		Env:   env,
		Ready: isReady(health),
	})
	if err != nil {
		return err
	}
	p.deliveries++
	p.Deliveries = append(p.Deliveries, process)
	p.DeliveryURLs = append(p.DeliveryURLs, "http://"+health)
	return nil
}

// PublicURL returns the beginning of links in responses.
func (p *Paddock) PublicURL() string { return p.options.PublicURL }

// Kubectl runs kubectl of Options.BinDir as the cluster's administrator and returns its output.
func (p *Paddock) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(p.options.BinDir, "kubectl"), append([]string{"--kubeconfig", p.cluster.Kubeconfig()}, args...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return output, fmt.Errorf("kubectl %v: %w\n%s", args, err, stderr.Bytes())
	}
	return output, nil
}

// Apply applies a kustomization of the repository by server-side apply. dir is relative to
// Options.SourceDir.
func (p *Paddock) Apply(ctx context.Context, dir string) error {
	_, err := p.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--kustomize", filepath.Join(p.options.SourceDir, dir))
	return err
}

// SetSecret creates or updates a Secret by server-side apply. kind is the type of the Secret.
func (p *Paddock) SetSecret(ctx context.Context, namespace, name, kind string, content map[string]string) error {
	clients, err := kubernetes.NewForConfig(p.cluster.Config())
	if err != nil {
		return fmt.Errorf("make a client of kube-apiserver: %w", err)
	}
	secret := corev1ac.Secret(name, namespace).WithType(corev1.SecretType(kind)).WithStringData(content)
	_, err = clients.CoreV1().Secrets(namespace).Apply(ctx, secret, metav1.ApplyOptions{FieldManager: "localpaddock", Force: true})
	if err != nil {
		return fmt.Errorf("apply Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Token makes a token of a ServiceAccount for an audience.
func (p *Paddock) Token(ctx context.Context, namespace, account, audience string, life time.Duration) (string, error) {
	clients, err := kubernetes.NewForConfig(p.cluster.Config())
	if err != nil {
		return "", fmt.Errorf("make a client of kube-apiserver: %w", err)
	}
	seconds := int64(life.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds}}
	answer, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token of %s/%s: %w", namespace, account, err)
	}
	return answer.Status.Token, nil
}

func (p *Paddock) startAPIServer(ctx context.Context, binary string, env []string, port, healthPort int) error {
	kubeconfig, err := p.kubeconfig("paddock-apiserver")
	if err != nil {
		return err
	}
	args := p.options.APIServerArgs
	if p.aggregation != nil && len(p.APIServers) == 0 {
		args = append(p.aggregation.args(), args...)
	}
	health := "127.0.0.1:" + strconv.Itoa(healthPort)
	process, err := p.cluster.StartProgram(ctx, localcluster.Program{
		Name: p.programName("apiserver", p.started),
		Path: filepath.Join(p.options.BinDir, binary),
		Args: append([]string{
			"--kubeconfig", kubeconfig,
			"--listen-address", "127.0.0.1:" + strconv.Itoa(port),
			"--health-address", health,
			"--public-url", p.options.PublicURL,
			"--postgres-networks", localNetworks,
			"--issuer-networks", localNetworks,
		}, append(p.keyArgs(), args...)...),
		Env:   env,
		Ready: isReady(health),
	})
	if err != nil {
		return err
	}
	p.started++
	p.APIServers = append(p.APIServers, process)
	p.URLs = append(p.URLs, address(port))
	p.HealthURLs = append(p.HealthURLs, address(healthPort))
	return nil
}

func (p *Paddock) startController(ctx context.Context, number, healthPort, metricsPort, webhookPort int) error {
	kubeconfig, err := p.kubeconfig("paddock-controller")
	if err != nil {
		return err
	}
	health := "127.0.0.1:" + strconv.Itoa(healthPort)
	process, err := p.cluster.StartProgram(ctx, localcluster.Program{
		Name: p.programName("controller", number),
		Path: filepath.Join(p.options.BinDir, "controller"),
		Args: append([]string{
			"--kubeconfig", kubeconfig,
			"--health-address", health,
			"--metrics-address", "127.0.0.1:" + strconv.Itoa(metricsPort),
			"--public-url", p.options.PublicURL,
			"--postgres-networks", localNetworks,
			"--issuer-networks", localNetworks,
			"--page-token-secret", pageTokenSecret,
		}, append(webhookArgs(webhookPort), p.options.ControllerArgs...)...),
		Ready: isReady(health),
	})
	if err != nil {
		return err
	}
	p.Controllers = append(p.Controllers, process)
	p.ControllerURLs = append(p.ControllerURLs, address(metricsPort))
	return nil
}

func (p *Paddock) programName(program string, number int) string {
	if number == 0 {
		return program
	}
	return program + "-" + strconv.Itoa(number+1)
}

// kubeconfig writes a kubeconfig of a ServiceAccount of Paddock's programs, and returns its path. The
// programs therefore have only the rights of config/rbac.
func (p *Paddock) kubeconfig(account string) (string, error) {
	path := p.cluster.File(account + ".kubeconfig")
	config, err := accountConfig(p.cluster, account)
	if err != nil {
		return "", err
	}
	return path, localcluster.WriteKubeconfig(path, config)
}

// accountConfig returns the configuration of a client that is a ServiceAccount of the namespace
// paddock-system.
func accountConfig(cluster *localcluster.Cluster, account string) (*rest.Config, error) {
	return cluster.UserConfig("system:serviceaccount:paddock-system:"+account,
		"system:serviceaccounts", "system:serviceaccounts:paddock-system", "system:authenticated")
}

// keyFlags are the flags of API servers about keys, by the name of the key in the Secret.
var keyFlags = map[string]string{"page": "--page-token-key-file", "hold": "--hold-key-file", "feed": "--feed-key-file"}

func (p *Paddock) keyArgs() []string {
	var args []string
	for name, flag := range keyFlags {
		args = append(args, flag, p.cluster.File(name+".keys"))
	}
	return args
}

// writeKeys waits until the controller has made the keys, and writes them to files for the API
// servers, as the kubelet does for their pods.
func (p *Paddock) writeKeys(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(p.cluster.Config())
	if err != nil {
		return fmt.Errorf("make a client of kube-apiserver: %w", err)
	}
	var made map[string][]byte
	err = wait.PollUntilContextTimeout(ctx, pageTokenInterval, pageTokenTimeout, true, func(ctx context.Context) (bool, error) {
		secret, err := clients.CoreV1().Secrets("paddock-system").Get(ctx, pageTokenSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		made = secret.Data
		return len(made) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the controller to make the keys of tokens: %w", err)
	}
	for name := range keyFlags {
		if err := os.WriteFile(p.cluster.File(name+".keys"), made[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

func isReady(health string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", request.URL, response.Status)
		}
		return nil
	}
}

func address(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
