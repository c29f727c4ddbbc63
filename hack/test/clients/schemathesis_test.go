package clients_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fuzzed are the operations of an API that are called.
var fuzzed = []struct {
	api string
	// paths are those of the short form. Each path of the FHIR API exists for 14 types in two spellings,
	// with one implementation.
	paths string
	// examples is how many requests the short form makes at most for each operation. They are the same each time.
	examples int
}{
	{"fhir", `^/fhir($|/(_|\$|metadata|AuditEvent|patient|Group))`, 15},
	{"ahds", `^/ahds/`, 15},
}

// leastRequests is how many requests the short form sends at least to each API.
const leastRequests = 500

var _ = Describe("Requests that schemathesis makes from the OpenAPI document", func() {
	for _, f := range fuzzed {
		It("get no answer that the document does not describe: "+f.api, func(ctx SpecContext) {
			paths, bounds := f.paths, []string{"--max-examples", strconv.Itoa(f.examples), "--generation-deterministic"}
			if seconds := os.Getenv("PADDOCK_SCHEMATHESIS_SECONDS"); seconds != "" { // the long form, see README.md
				paths, bounds = "^/"+f.api, []string{"--max-time", seconds, "--generation-database", "none"}
			}
			report := filepath.Join(GinkgoT().TempDir(), "report.ndjson")
			command := exec.CommandContext(ctx, filepath.Join("venv", "bin", "schemathesis"), slices.Concat([]string{
				"run", paddock.URLs[0] + "/site/" + fuzzedSite + "/openapi.json",
				"--origin", paddock.URLs[0], "--include-path-regex", paths,
				"--exclude-operation-id", "streamDeliveries", // its response does not end
				"--exclude-operation-id", "import", // schemathesis writes no NDJSON
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
				"--phases", "fuzzing", "--workers", "1", // two make Python 3.11 fail at times (SystemError)
				"--continue-on-failure", "--no-shrink",
				"--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "40",
				"--header", "Authorization: Bearer " + tokens[fuzzedSite],
				"--report", "ndjson", "--report-ndjson-path", report, "--output-truncate", "false",
			}, bounds)...)
			command.Dir = pythonLibrary.folder()
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s", output)
			sent := requestsIn(report)
			Expect(sent).To(BeNumerically(">", leastRequests), "requests")
			summary = append(summary, fmt.Sprintf("schemathesis     %-14s %d requests, each answered as the OpenAPI document says", f.api, sent))
		}, NodeTimeout(2*time.Hour))
	}
})

// requestsIn counts the requests in a report of schemathesis.
func requestsIn(report string) int {
	GinkgoHelper()
	text, err := os.ReadFile(report)
	Expect(err).NotTo(HaveOccurred())
	sent := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var event struct {
			ScenarioFinished *struct {
				Recorder struct{ Interactions map[string]any }
			}
		}
		Expect(json.Unmarshal(lines.Bytes(), &event)).To(Succeed())
		if event.ScenarioFinished != nil {
			sent += len(event.ScenarioFinished.Recorder.Interactions)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return sent
}
