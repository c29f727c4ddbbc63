package move

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// ended is how kubectl-paddock ended.
type ended struct {
	code           int
	stdout, stderr string
}

func plugin(args ...string) *exec.Cmd {
	made := exec.Command(filepath.Join(bin, "kubectl-paddock"), args...)
	made.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	return made
}

// run runs kubectl-paddock until it ends.
func run(ctx context.Context, args ...string) ended {
	GinkgoHelper()
	program := plugin(args...)
	var stdout, stderr bytes.Buffer
	program.Stdout, program.Stderr = &stdout, &stderr
	Expect(program.Start()).To(Succeed(), "the programs come from `make build`")
	stop := context.AfterFunc(ctx, func() { _ = program.Process.Kill() })
	defer stop()
	_ = program.Wait() // the code says how it ended
	GinkgoWriter.Printf("$ kubectl paddock %v\n%s%s(code %d)\n", args, stdout.String(), stderr.String(), program.ProcessState.ExitCode())
	return ended{program.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// lines matches output whose lines match the patterns, in this order. Further lines may be between.
func lines(patterns ...string) OmegaMatcher {
	all := `(?ms)`
	for _, p := range patterns {
		all += `^` + p + `$.*?`
	}
	return MatchRegexp(all)
}

// commandSpecs begin with the database first, and end with the database second.
func commandSpecs() {
	move := func(ctx context.Context, args ...string) ended {
		return run(ctx, append([]string{"move", "demo", "-n", "demo"}, args...)...)
	}
	// name returns the name of the SiteMove that a command has created.
	name := func(got ended) string {
		GinkgoHelper()
		found := regexp.MustCompile(`created SiteMove (demo-\S+)`).FindStringSubmatch(got.stderr)
		Expect(found).To(HaveLen(2), "%+v", got)
		return found[1]
	}

	It("is refused with a reason", func(ctx SpecContext) {
		Expect(move(ctx, "--to", "first")).To(Equal(ended{2, "", "error: --to: \"first\" is not a storage; use postgres:SECRET with the name of a Secret, pool, or pool:REGION\nSee kubectl paddock move --help.\n"}))
		Expect(move(ctx, "--to", "postgres:second", "--confirm").code).To(Equal(2))
		Expect(move(ctx, "--confirm", "--roll-back").stderr).To(ContainSubstring("give only one of --to, --confirm and --roll-back"))
		Expect(move(ctx, "--confirm")).To(Equal(ended{1, "", "error: site demo/demo has no move in progress; begin one with --to or --to-namespace\n"}))
		Expect(run(ctx, "move", "absent", "-n", "demo", "--confirm").stderr).To(ContainSubstring(`"absent" not found`))
	})

	It("waits for what is missing, can be interrupted, and is given up", func(ctx SpecContext) {
		session, err := gexec.Start(plugin("move", "demo", "-n", "demo", "--to", "postgres:third"), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait() })
		Eventually(session.Err.Contents).WithTimeout(patience).Should(ContainSubstring(`There is no Secret "third" of type paddock.health/dsn`))
		session.Interrupt()
		Eventually(session).WithTimeout(patience).Should(gexec.Exit())
		Expect(session.Err.Contents()).To(ContainSubstring("the move goes on; repeat the command without --to and --to-namespace to see its progress"))
		Expect(session.ExitCode()).NotTo(BeZero())
		got := move(ctx, "--roll-back")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(got.stderr).To(lines(`RolledBack .*`))
		Expect(storage(ctx)).To(Equal("Postgres first"))
	})

	It("shows each phase, returns, and is confirmed", func(ctx SpecContext) {
		l := startLoad("d")
		time.Sleep(500 * time.Millisecond)
		got := move(ctx, "--to", "postgres:second")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(got.stderr).To(lines(`Switched  100 %  The Site is served from the new storage\. .*  Writes were paused for \d+\.\d s\.`))
		Expect(pauseOf(ctx, name(got))).To(BeNumerically("<", maxPause))
		Expect(move(ctx, "--to", "postgres:first")).To(Equal(ended{1, "", "error: SiteMove demo/" + name(got) + " of site demo/demo has not ended; end it with --confirm or --roll-back\n"}))
		got = move(ctx)
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(got.stderr).To(HavePrefix("Switched  100 %"))

		got = move(ctx, "--roll-back")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(got.stderr).To(lines(`RolledBack .*`))
		Expect(storage(ctx)).To(Equal("Postgres first"))

		got = move(ctx, "--to", "postgres:second")
		Expect(got.code).To(Equal(0), "%+v", got)
		got = move(ctx, "--confirm")
		Expect(got.code).To(Equal(0), "%+v", got)
		Expect(got.stderr).To(lines(`Completed .*`))
		Expect(storage(ctx)).To(Equal("Postgres second"))
		l.stop(ctx)
		expectNothing(ctx, "first")
	})
}
