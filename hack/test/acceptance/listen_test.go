package acceptance

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

var printedSecret = regexp.MustCompile(`secret: (whsec_\S+)\n`)

var _ = Describe("bin/listen", func() {
	for _, site := range demos {
		It("forwards what a webhook of site "+site+" is sent, also what happened while it was cut off", func(ctx SpecContext) {
			// No public address leads to this receiver, and the site's own deliveries fail.
			elsewhere := startReceiver()
			elsewhere.Answer(http.StatusInternalServerError)
			id, _ := addWebhook(ctx, site, "user.created", elsewhere)
			local := localreceiver.StartPlain()
			DeferCleanup(local.Close)

			tokenFile := filepath.Join(GinkgoT().TempDir(), "token")
			Expect(os.WriteFile(tokenFile, []byte(demoToken("/site/"+site+"/")+"\n"), 0o600)).To(Succeed())
			listen := exec.Command(filepath.Join("..", "..", "..", "bin", "listen"),
				"--site", paddock.URLs[0]+"/site/"+site, "--token-file", tokenFile, "--webhook", id, "--forward-to", local.URL+"/hook")
			session, err := gexec.Start(listen, GinkgoWriter, GinkgoWriter)
			Expect(err).NotTo(HaveOccurred(), "the programs come from `make build`")
			DeferCleanup(func() { session.Kill().Wait() })
			Eventually(session).Should(gbytes.Say(`secret: (whsec_\S+)\n.* connected\n`))
			secret := printedSecret.FindSubmatch(session.Out.Contents())[1]
			verifier, err := standardwebhooks.NewWebhook(string(secret))
			Expect(err).NotTo(HaveOccurred())

			create := func() string {
				GinkgoHelper()
				vet := "vet-" + uuid.NewString()
				made := send(request{method: "PUT", url: paddock.URLs[1] + "/site/" + site + "/fhir/practitioner/" + vet, body: `{"resourceType":"Practitioner","id":"` + vet + `"}`})
				Expect(made.status).To(Equal(http.StatusCreated), string(made.body))
				return "Practitioner/" + vet
			}
			subjects := []string{create()}
			Eventually(func() []localreceiver.Delivery { return local.About(subjects[0]) }).Should(HaveLen(1))
			Eventually(session).Should(gbytes.Say(`user.created ` + subjects[0] + ` \S+ 204 \S+ms\n`))

			By("a server that stops does not wait for the stream, and the relay continues where it was")
			began := time.Now()
			process, err := os.FindProcess(paddock.APIServers[0].Pid())
			Expect(err).NotTo(HaveOccurred())
			Expect(process.Signal(syscall.SIGTERM)).To(Succeed())
			Eventually(paddock.APIServers[0].Running).Within(15 * time.Second).Should(BeFalse())
			Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second), "requests in progress have twenty seconds")
			subjects = append(subjects, create(), create())
			Expect(paddock.APIServers[0].Restart(ctx)).To(Succeed())
			subjects = append(subjects, create())
			Eventually(func() []localreceiver.Delivery { return local.About(subjects[3]) }).Within(60 * time.Second).Should(HaveLen(1))
			got := []string{}
			for _, d := range local.Where(func(localreceiver.Delivery) bool { return true }) {
				Expect(verifier.Verify(d.Body, d.Header)).To(Succeed())
				Expect(d.Event).To(HaveKeyWithValue("id", d.Header.Get("webhook-id")))
				got = append(got, d.Event["subject"].(string))
			}
			Expect(got).To(Equal(subjects), "each once, in order")

			session.Interrupt()
			Eventually(session).Should(gexec.Exit(0))
			Expect(session.Out).To(gbytes.Say(`to continue here: --last-event-id \d+-\d+\n`))
		})
	}
})
