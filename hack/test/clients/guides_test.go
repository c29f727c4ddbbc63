package clients_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// guide is a program of docs/guides/clients.
type guide struct {
	// page is the page of the program, and language the info string of its block.
	page, language string
	// library is whose folder it runs in. If it is empty, it runs in a folder of its own. file is its name there.
	library library
	file    string
	// commands compile and run it.
	commands [][]string
}

var guides = []guide{
	{page: "python.md", language: "python", library: pythonLibrary, file: "guide.py", commands: [][]string{{python, "guide.py"}}},
	{page: "java.md", language: "java", library: javaLibrary, file: "Guide.java", commands: [][]string{
		{"java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join("lib", "*"), "Guide.java"},
	}},
	{page: "typescript.md", language: "typescript", library: nodeLibrary, file: "guide.ts", commands: [][]string{
		{filepath.Join("node_modules", ".bin", "openapi-typescript"), "openapi.json", "--output", "api.ts"},
		{filepath.Join("node_modules", ".bin", "tsc"), "--strict", "--noUncheckedIndexedAccess", "false", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node,fhir", "guide.ts"},
		{"node", "guide.js"},
	}},
	{page: "go.md", language: "go", file: "main.go", commands: [][]string{{"go", "run", "main.go"}}},
}

// programIn returns the first block of a language in a page.
func programIn(page, language string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "clients", page))
	Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindSubmatch(text)
	Expect(block).To(HaveLen(2), "%s has no block of %s", page, language)
	return string(block[1])
}

var _ = Describe("The program in the guide", func() {
	for _, g := range guides {
		It(g.page+" works as it is printed", func(ctx SpecContext) {
			folder := GinkgoT().TempDir()
			if g.library.source != "" {
				folder = g.library.folder()
			}
			Expect(os.WriteFile(filepath.Join(folder, g.file), []byte(programIn(g.page, g.language)), 0o600)).To(Succeed())
			writeDocument(filepath.Join(folder, "openapi.json"))
			var output []byte
			for _, args := range g.commands {
				command := exec.CommandContext(ctx, args[0], args[1:]...)
				command.Dir = folder
				command.Env = append(os.Environ(), "SITE="+traffic.address+"/site/"+clusterSite, "TOKEN="+tokens[clusterSite])
				var err error
				output, err = command.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), "%v: %s", args, output)
			}
			Expect(strings.TrimSpace(string(output))).To(Equal("ok"))
		}, NodeTimeout(3*time.Minute))
	}
})

// writeDocument writes the OpenAPI document of the cluster site to a file.
func writeDocument(file string) {
	GinkgoHelper()
	answer, err := http.Get(paddock.URLs[0] + "/site/" + clusterSite + "/openapi.json")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.StatusCode).To(Equal(http.StatusOK), string(text))
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
}
