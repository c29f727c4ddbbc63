package release_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A release", func() {
	It("has the same bytes each time, except for signatures", func() {
		entries, err := os.ReadDir(second)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(entries)).To(BeNumerically(">=", 10))
		for _, entry := range entries {
			again, err := os.ReadFile(filepath.Join(second, entry.Name()))
			Expect(err).NotTo(HaveOccurred())
			once, err := os.ReadFile(filepath.Join(first, entry.Name()))
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.Equal(again, once)).To(BeTrue(), "%s differs", entry.Name())
		}
	})

	It("verifies in the registry and as files, by its key alone", func(ctx SpecContext) {
		out := run(ctx, "release", "verify", "-registry", address(), "-version", version, "-dir", first, "-key", key+".pub")
		Expect(strings.Count(out, "verified\n")).To(Equal(6), out) // files, two images with a platform each, chart
		other := filepath.Join(GinkgoT().TempDir(), "other")
		run(ctx, "release", "keygen", "-out", other)
		out, err := try(ctx, "release", "verify", "-registry", address(), "-version", version, "-key", other+".pub")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("has no statement"))
	}, NodeTimeout(time.Minute))

	It("does not verify if the tag names other images", func(ctx SpecContext) {
		const path = "/moved"
		run(ctx, "release", "push", "-registry", registry.Address+path, "-dir", second)
		out, err := try(ctx, "release", "verify", "-registry", registry.Address+path, "-version", version, "-key", key+".pub")
		Expect(err).To(HaveOccurred(), "unsigned images were accepted")
		Expect(out).To(ContainSubstring("the registry lists no such statement"))
	}, NodeTimeout(time.Minute))

	It("is not pushed after a file was changed", func(ctx SpecContext) {
		changed := filepath.Join(GinkgoT().TempDir(), "changed")
		Expect(os.CopyFS(changed, os.DirFS(first))).To(Succeed())
		file, err := os.OpenFile(filepath.Join(changed, "controller.tar"), os.O_APPEND|os.O_WRONLY, 0)
		Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString("more")
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Close()).To(Succeed())
		out, err := try(ctx, "release", "push", "-registry", address(), "-dir", changed)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("controller.tar is missing or has another checksum"))
	}, NodeTimeout(time.Minute))

	It("has the programs that were built", func(ctx SpecContext) {
		pushed := digests(first)
		for _, program := range []string{"apiserver", "controller"} {
			pulled := filepath.Join(GinkgoT().TempDir(), program)
			Expect(registry.PullProgram(ctx, "clinics/"+program, pushed[program], pulled)).To(Succeed())
			got, err := os.ReadFile(pulled)
			Expect(err).NotTo(HaveOccurred())
			built, err := os.ReadFile(filepath.Join(bin, program))
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.Equal(got, built)).To(BeTrue(), "%s differs", program)
		}
	}, NodeTimeout(time.Minute))

	It("lists every module that go version -m shows of a program", func(ctx SpecContext) {
		for _, program := range []string{"apiserver", "controller", "kubectl-paddock"} {
			out, err := exec.CommandContext(ctx, "go", "version", "-m", filepath.Join(bin, program)).Output()
			Expect(err).NotTo(HaveOccurred())
			want := []string{"std " + strings.TrimPrefix(runtime.Version(), "go")}
			for line := range strings.Lines(string(out)) {
				if fields := strings.Fields(line); fields[0] == "dep" {
					want = append(want, fields[1]+" "+fields[2])
				}
			}
			Expect(len(want)).To(BeNumerically(">", 50))
			Expect(listed(program)).To(ConsistOf(want), program)
		}
	}, NodeTimeout(time.Minute))

	It("has a chart that installs the images of the release by digest", func(ctx SpecContext) {
		pushed := digests(first)
		rendered := run(ctx, "helm", "template", "paddock", "oci://"+address()+"/charts/paddock@"+pushed["charts/paddock"], "--plain-http",
			"--namespace", "paddock-system")
		images := regexp.MustCompile(`(?m)^\s+(?:- )?image: (.*)$`).FindAllStringSubmatch(rendered, -1)
		Expect(len(images)).To(BeNumerically(">=", 4))
		for _, image := range images {
			Expect(strings.Trim(image[1], `"`)).To(Or(
				Equal(address()+"/apiserver@"+pushed["apiserver"]),
				Equal(address()+"/controller@"+pushed["controller"]),
			))
		}
	}, NodeTimeout(time.Minute))
})
