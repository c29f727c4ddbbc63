package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// client is a program that exercises a site's FHIR API with one client library.
type client struct {
	name    string
	library library
	// command starts the program in the library's folder.
	command []string
	// loses says what the library itself does not keep.
	loses losses
	// steps are those that the program has in addition to commonSteps.
	steps []string
}

// commonSteps are what each program tries out. It writes "ok: {step}" after each.
var commonSteps = []string{
	"capabilities", "write back", "create", "conditional create", "vread", "history", "all pages", "include",
	"batch", "transaction", "errors", "delete",
}

// changedLanguage is what a program sets the element language of every record to.
const changedLanguage = "de-AT"

var (
	python  = filepath.Join("venv", "bin", "python")
	clients = []client{
		{name: "hapi", library: javaLibrary, command: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-cp", filepath.Join("lib", "*"), "Exercise.java"}, steps: []string{"operations"}},
		{
			name: "fhirpy", library: pythonLibrary, command: []string{python, "exercise_fhirpy.py"},
			loses: losses{precision: true},
			steps: []string{"conditional update"},
		},
		{
			name: "smart-python", library: pythonLibrary, command: []string{python, "exercise_fhirclient.py"},
			loses: losses{precision: true, primitiveExtensions: true},
		},
		{
			name: "fhir-kit-client", library: nodeLibrary, command: []string{"node", "fhir-kit-client.mjs"},
			loses: losses{precision: true},
			steps: []string{"conditional update", "patch", "search by POST", "history of the site", "$validate"},
		},
		{name: "medplum", library: nodeLibrary, command: []string{"node", "medplum.mjs"}, loses: losses{precision: true}, steps: []string{"patch"}},
		{name: "smart-js", library: nodeLibrary, command: []string{"node", "smart.mjs"}, loses: losses{precision: true}, steps: []string{"patch"}},
	}
)

// summary has a line for each client and site.
var summary []string

var _ = AfterSuite(func() { fmt.Println("\n" + strings.Join(summary, "\n")) })

var _ = Describe("The client library", func() {
	for _, c := range clients {
		for _, site := range []string{clusterSite, postgresSite} {
			It(c.name+" works with the site "+site, func(ctx SpecContext) {
				records := makeRecords(c.name)
				Expect(records).To(HaveLen(recordCount))
				for _, r := range records {
					r.store(site)
				}
				traffic.take()
				began := time.Now()
				steps := c.run(ctx, site, records)
				took := time.Since(began)
				seen := traffic.take()
				Expect(seen.err).NotTo(HaveOccurred())
				Expect(steps).To(ConsistOf(slices.Concat(commonSteps, c.steps)))
				checkVersions(seen.updates)
				same, changed := 0, 0
				for _, r := range records {
					s, d := c.checkRecord(site, r, seen.updates)
					same, changed = same+s, changed+d
				}
				summary = append(summary, fmt.Sprintf("%-16s %-14s %2d steps, %4d requests; of %d records %3d updates changed nothing and %3d did; %4.1f s",
					c.name, site, len(steps), seen.requests, len(records), same, changed, took.Seconds()))
			}, NodeTimeout(5*time.Minute))
		}
	}
})

// run runs the program against a site and returns the steps that succeeded.
func (c client) run(ctx SpecContext, site string, records []*record) []string {
	GinkgoHelper()
	var references []string
	for _, r := range records {
		references = append(references, r.reference)
	}
	atomic := "no"
	if site == postgresSite {
		atomic = "yes"
	}
	command := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	command.Dir = c.library.folder()
	command.Env = append(os.Environ(), "PYTHONUTF8=1",
		"FHIR_BASE="+traffic.address+"/site/"+site+"/fhir", "FHIR_TOKEN="+tokens[site],
		"FHIR_TAG=urn:clients|"+c.name, "FHIR_RECORDS="+strings.Join(references, " "),
		"FHIR_LANGUAGE="+changedLanguage, "FHIR_ATOMIC="+atomic)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), "%s%s", output, complaints.String())
	var steps []string
	for line := range strings.Lines(string(output)) {
		if step, ok := strings.CutPrefix(strings.TrimSpace(line), "ok: "); ok {
			steps = append(steps, step)
		}
	}
	return steps
}

// checkVersions expects one new version for each update that changed something, and none for the rest.
func checkVersions(updates []update) {
	GinkgoHelper()
	for _, u := range updates {
		wanted := u.before
		if !u.same() {
			wanted++
		}
		Expect(u.after).To(Equal(wanted), "the version of %s after an update of version %d that changed: %s", u.reference, u.before, u.diff)
	}
}

// checkRecord checks what became of a record that a program read and wrote back, then changed, then
// read and wrote back again. It returns how many updates changed nothing and how many did.
func (c client) checkRecord(site string, r *record, updates []update) (same, changed int) {
	GinkgoHelper()
	body, err := parse(r.body)
	Expect(err).NotTo(HaveOccurred())
	wanted := []bool{c.loses.keep(body), false, true}
	var got []bool
	var diffs []string
	for _, u := range updates {
		if u.reference == r.reference {
			got = append(got, u.same())
			if u.same() {
				same++
			} else {
				changed++
				diffs = append(diffs, u.diff)
			}
		}
	}
	Expect(got).To(Equal(wanted), "%s: which of the three updates sent the JSON value that was stored; the others changed: %s", r.reference, strings.Join(diffs, "\n"))

	By("keeping each version as it was written")
	first := send(http.MethodGet, site, r.reference+"/_history/1", nil)
	Expect(string(first.body)).To(Equal(string(r.first)))
	last, err := parse(send(http.MethodGet, site, r.reference, nil).body)
	Expect(err).NotTo(HaveOccurred())
	body["language"] = changedLanguage
	Expect(last).To(Equal(c.loses.of(body)), "%s is not what was stored with another language", r.reference)
	var history struct{ Total int }
	Expect(json.Unmarshal(send(http.MethodGet, site, r.reference+"/_history", nil).body, &history)).To(Succeed())
	Expect(history.Total).To(Equal(changed+1), "%s: versions in its history", r.reference)
	return same, changed
}
