package clients_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// schemathesisSeconds is how long requests are generated for each API. PADDOCK_SCHEMATHESIS_SECONDS
// replaces it: the README has the long form.
const schemathesisSeconds = 25

// fuzzed are the operations of each API that the short form calls: those of some types, and the site's.
// Each path of the FHIR API exists for 14 types in two spellings, with one implementation.
var fuzzed = map[string]string{
	"fhir": `^/fhir($|/(_|\$|metadata|AuditEvent|patient|Patient|endpoint|group|RelatedPerson))`,
	"ahds": `^/ahds/`,
}

// leastRequests is how many requests the short form sends at least to each API.
const leastRequests = 100

var _ = Describe("Requests that schemathesis makes from the OpenAPI document", func() {
	for api, paths := range fuzzed {
		It("get no answer that the document does not describe: "+api, func(ctx SpecContext) {
			seconds := strconv.Itoa(schemathesisSeconds)
			if long := os.Getenv("PADDOCK_SCHEMATHESIS_SECONDS"); long != "" {
				seconds, paths = long, "^/"+api
			}
			report := filepath.Join(GinkgoT().TempDir(), "report.ndjson")
			command := exec.CommandContext(ctx, filepath.Join("venv", "bin", "schemathesis"), "run",
				paddock.URLs[0]+"/site/"+postgresSite+"/openapi.json",
				"--origin", paddock.URLs[0], "--include-path-regex", paths,
				"--exclude-operation-id", "streamDeliveries", // its response does not end
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
				"--phases", "fuzzing", "--max-time", seconds, "--workers", "2", "--continue-on-failure", "--no-shrink",
				"--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "40",
				"--header", "Authorization: Bearer "+tokens[postgresSite],
				"--report", "ndjson", "--report-ndjson-path", report, "--output-truncate", "false")
			command.Dir = pythonLibrary.folder()
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s", output)
			sent := requestsIn(report)
			Expect(sent).To(BeNumerically(">", leastRequests), "requests")
			summary = append(summary, fmt.Sprintf("schemathesis     %-14s %d requests, each answered as the OpenAPI document says", api, sent))
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
