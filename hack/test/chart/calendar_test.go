package chart_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/freeport"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// clinic is the demo Site, served by programs that run as processes with the rights of the installed chart and the keys
// of its Secret.
type clinic struct {
	server *localcluster.Process
	url    string
}

// startClinic creates the Site and returns when it is served.
func startClinic(ctx context.Context) *clinic {
	GinkgoHelper()
	address, health := freeAddress(), freeAddress()
	c := &clinic{url: "http://" + address + "/site/demo"}
	controllerHealth := freeAddress()
	start(ctx, "controller", controllerHealth, "--health-address", controllerHealth, "--metrics-address", freeAddress(),
		"--webhook-address", "0", "--public-url", "http://"+address, "--page-token-secret", pageTokenSecret)
	run(ctx, "kubectl", "apply", "--server-side", "--kustomize", filepath.Join(root, "config", "samples"))
	run(ctx, "kubectl", "wait", "--for=condition=Ready", "--timeout=1m", "--namespace", "demo", "site/demo")
	writeKeys(ctx)
	c.server = start(ctx, "apiserver", health, "--health-address", health, "--listen-address", address, "--public-url", "http://"+address,
		"--page-token-key-file", cluster.File("page"), "--hold-key-file", cluster.File("hold"), "--feed-key-file", cluster.File("feed"))
	return c
}

// restart replaces the API server by one that starts with the keys that the Secret has now.
func (c *clinic) restart(ctx context.Context) {
	GinkgoHelper()
	writeKeys(ctx)
	Expect(c.server.Restart(ctx)).To(Succeed())
}

// newCalendar creates a calendar and returns its address, which needs no token.
func (c *clinic) newCalendar(ctx context.Context) string {
	GinkgoHelper()
	token := run(ctx, "kubectl", "create", "token", "editor", "--namespace", "demo", "--audience", "paddock.health/demo/demo")
	var address string
	Eventually(func() error {
		body := bytes.NewBufferString(`{"resourceId":"33333333-3333-4333-8333-333333333333"}`)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/ahds/v1/availability-slot-feed", body)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		request.Header.Set("Content-Type", "application/json")
		text, err := fetch(request, http.StatusCreated)
		if err != nil {
			return err
		}
		var feed struct{ URL string }
		if err := json.Unmarshal(text, &feed); err != nil {
			return err
		}
		address = feed.URL
		return nil
	}).WithTimeout(learns).Should(Succeed())
	return address
}

// calendar returns what a calendar program gets from an address.
func calendar(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	text, err := fetch(request, http.StatusOK)
	return string(text), err
}

// fetch sends a request and returns the body of a response with the status.
func fetch(request *http.Request, status int) ([]byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != status {
		err = fmt.Errorf("%s %s: status %d, want %d: %s", request.Method, request.URL, response.StatusCode, status, text)
	}
	return text, err
}

// start starts one of Paddock's programs as its service account.
func start(ctx context.Context, program, health string, args ...string) *localcluster.Process {
	GinkgoHelper()
	config, err := cluster.UserConfig("system:serviceaccount:"+namespace+":paddock-"+program,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := cluster.File(program + ".kubeconfig")
	Expect(localcluster.WriteKubeconfig(kubeconfig, config)).To(Succeed())
	process, err := cluster.StartProgram(ctx, localcluster.Program{
		Name: program,
		Path: filepath.Join(bin, program),
		Args: append(args, "--kubeconfig", kubeconfig),
		Ready: func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
			if err != nil {
				return err
			}
			_, err = fetch(request, http.StatusOK)
			return err
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(process.Kill)
	return process
}

// writeKeys writes the keys of tokens to files, as the kubelet does for pods.
func writeKeys(ctx context.Context) {
	GinkgoHelper()
	for name, key := range secret(ctx, pageTokenSecret).Data {
		Expect(os.WriteFile(cluster.File(name), key, 0o600)).To(Succeed())
	}
}

// freeAddress returns an address on which no program listens.
func freeAddress() string {
	GinkgoHelper()
	address, err := freeport.Address()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// expectCalendar checks that an address works. A started API server needs a moment to see its Sites.
func expectCalendar(ctx context.Context, address string) {
	GinkgoHelper()
	Eventually(func() (string, error) { return calendar(ctx, address) }).WithTimeout(time.Minute).Should(HavePrefix("BEGIN:VCALENDAR"))
}
