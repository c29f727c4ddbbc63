package clients_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/paddock-health/paddock/hack/dev/freeport"
)

// receivers are the programs of docs/guides/webhooks.md, by the language they are written in.
var receivers = map[string]func(ctx context.Context) *exec.Cmd{
	"Go": func(ctx context.Context) *exec.Cmd {
		program := filepath.Join(GinkgoT().TempDir(), "receiver")
		output, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./receiver").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		return exec.Command(program)
	},
	"Node.js": func(context.Context) *exec.Cmd { return inFolder(nodeLibrary, "node", "receiver.mjs") },
	"Python":  func(context.Context) *exec.Cmd { return inFolder(pythonLibrary, python, "receiver.py") },
}

func inFolder(l library, name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir = l.folder()
	return command
}

const receiverManifest = `apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %s, namespace: %s}
spec: {eventType: user.created, url: %q, caBundle: %s, active: true}
`

var _ = Describe("The receiver in", func() {
	for language, program := range receivers {
		It(language+" verifies what it gets", func(ctx SpecContext) {
			By("serving TLS in front of it")
			port := freePort()
			behind, err := url.Parse("http://127.0.0.1:" + port)
			Expect(err).NotTo(HaveOccurred())
			statuses := make(chan int, 100)
			var last []byte
			var header http.Header
			proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) {
					last, _ = io.ReadAll(r.In.Body)
					header = r.In.Header.Clone()
					r.Out.Body = io.NopCloser(bytes.NewReader(last))
					r.SetURL(behind)
				},
				ModifyResponse: func(r *http.Response) error { statuses <- r.StatusCode; return nil },
			})
			DeferCleanup(proxy.Close)

			By("making a webhook")
			id := uuid.NewString()
			ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}))
			file := filepath.Join(GinkgoT().TempDir(), "webhook.yaml")
			Expect(os.WriteFile(file, fmt.Appendf(nil, receiverManifest, id, clusterSite, proxy.URL+"/hook", ca), 0o600)).To(Succeed())
			_, err = paddock.Kubectl(ctx, "apply", "--filename", file)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { _, _ = paddock.Kubectl(ctx, "delete", "--filename", file) })
			_, err = paddock.Kubectl(ctx, "wait", "--for=condition=Accepted", "--timeout=30s", "--namespace", clusterSite, "webhook/"+id)
			Expect(err).NotTo(HaveOccurred())
			name, err := paddock.Kubectl(ctx, "get", "webhook", id, "--namespace", clusterSite, "--output", "jsonpath={.status.secretName}")
			Expect(err).NotTo(HaveOccurred())
			secret, err := paddock.Kubectl(ctx, "get", "secret", string(name), "--namespace", clusterSite, "--output", "go-template={{.data.secret | base64decode}}")
			Expect(err).NotTo(HaveOccurred())

			By("starting it")
			command := program(ctx)
			command.Env = append(os.Environ(), "WEBHOOK_SECRET="+string(secret), "PORT="+port, "ADDR=127.0.0.1:"+port)
			said := gbytes.NewBuffer()
			command.Stdout, command.Stderr = said, said
			Expect(command.Start()).To(Succeed())
			DeferCleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
			Eventually(func() error {
				connection, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err == nil {
					err = connection.Close()
				}
				return err
			}).Should(Succeed())

			By("sending it a test")
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, paddock.URLs[0]+"/site/"+clusterSite+"/ahds/v1/webhook/"+id+"/test", nil)
			Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Authorization", "Bearer "+tokens[clusterSite])
			answer, err := http.DefaultClient.Do(request)
			Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(answer.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Body.Close()).To(Succeed())
			Expect(answer.StatusCode).To(Equal(http.StatusAccepted), string(text))
			var accepted struct{ EventID string }
			Expect(json.Unmarshal(text, &accepted)).To(Succeed())
			Eventually(statuses).Should(Receive(Equal(http.StatusNoContent)))
			Eventually(said).Should(gbytes.Say(accepted.EventID))

			By("changing what was signed")
			forged, err := http.NewRequestWithContext(ctx, http.MethodPost, behind.String()+"/hook", strings.NewReader(strings.Replace(string(last), "user.created", "user.updated", 1)))
			Expect(err).NotTo(HaveOccurred())
			forged.Header = header
			refused, err := http.DefaultClient.Do(forged)
			Expect(err).NotTo(HaveOccurred())
			Expect(refused.Body.Close()).To(Succeed())
			Expect(refused.StatusCode).To(Equal(http.StatusUnauthorized))
		}, NodeTimeout(2*time.Minute))
	}
})

func freePort() string {
	GinkgoHelper()
	ports, err := freeport.Choose(1)
	Expect(err).NotTo(HaveOccurred())
	return strconv.Itoa(ports[0])
}
