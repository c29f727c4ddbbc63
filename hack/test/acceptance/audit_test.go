package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/paddock-health/paddock/apiserver/audit"
	engine "github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/tracecollector"
)

// auditorManifest is a ServiceAccount that may read the audit log of the Site in a namespace.
const auditorManifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: auditor, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditor, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: %[1]s}]
`

// auditorOf makes a token of a namespace's auditor for a Site, and waits until the auditor has its right.
func auditorOf(ctx SpecContext, namespace, site string) string {
	GinkgoHelper()
	apply(ctx, auditorManifest, namespace)
	awaitRight(ctx, "system:serviceaccount:"+namespace+":auditor",
		authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: "r4.fhir.paddock.health", Resource: "auditevents"})
	made, err := paddock.Token(ctx, namespace, "auditor", "paddock.health/"+namespace+"/"+site, time.Hour)
	Expect(err).NotTo(HaveOccurred())
	return made
}

// auditEvents are AuditEvents as NDJSON, newest first.
func auditEvents(base, site, token, query string) []string {
	GinkgoHelper()
	answer := send(request{method: "GET", url: base + "/site/" + site + "/fhir/AuditEvent?" + query, token: token, header: map[string]string{"Accept": "application/fhir+ndjson"}})
	Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
	return strings.Split(strings.TrimSpace(string(answer.body)), "\n")
}

// secret makes values that must not be found where they do not belong.
type secret struct {
	run string
	n   atomic.Int64
}

func (s *secret) value(where string) string {
	return fmt.Sprintf("Seeded%s%s%d", s.run, where, s.n.Add(1))
}

var _ = Describe("The audit log of processes", Serial, func() {
	for _, site := range demos {
		It("is one of all replicas, and survives the loss of one, for "+site, func(ctx SpecContext) {
			auditor := auditorOf(ctx, site, site)
			Expect(paddock.AddAPIServer(ctx, "apiserver")).To(Succeed())
			last := len(paddock.URLs) - 1
			waitReady(ctx, site, site)
			doomed := paddock.URLs[last]
			path := "/site/" + site + "/fhir/patient/audited-" + site
			Expect(send(request{method: "PUT", url: doomed + path, body: patient(1)}).status).To(BeElementOf(http.StatusOK, http.StatusCreated))
			Expect(send(request{method: "GET", url: doomed + path}).status).To(Equal(http.StatusOK))
			Eventually(func() []string { // entries of reads are stored every half second
				return auditEvents(paddock.URLs[0], site, auditor, "entity=Patient/audited-"+site+"&action=R")
			}).WithContext(ctx).Should(HaveExactElements(ContainSubstring("Patient/audited-" + site)))
			By("killing the replica right after it answered a write and a denial")
			Expect(send(request{method: "PUT", url: doomed + path, body: patient(2)}).status).To(Equal(http.StatusOK))
			Expect(send(request{method: "GET", url: doomed + strings.Replace(path, "audited", "absent", 1)}).status).To(Equal(http.StatusNotFound))
			Expect(paddock.APIServers[last].Kill()).To(Succeed())
			paddock.APIServers, paddock.URLs, paddock.HealthURLs = paddock.APIServers[:last], paddock.URLs[:last], paddock.HealthURLs[:last]
			for _, base := range paddock.URLs {
				Expect(auditEvents(base, site, auditor, "entity=Patient/audited-"+site+"&action=U")).To(HaveLen(2))
				Expect(auditEvents(base, site, auditor, "entity=Patient/audited-"+site+"&action=R")).To(HaveLen(1), "a read before the last half second")
				Expect(auditEvents(base, site, auditor, "entity=Patient/absent-"+site)).To(HaveLen(1))
			}
			By("finding a read within a second on the other replica")
			Expect(send(request{method: "GET", url: paddock.URLs[0] + path}).status).To(Equal(http.StatusOK))
			Eventually(func() []string {
				return auditEvents(paddock.URLs[1], site, auditor, "action=R&entity=Patient/audited-"+site)
			}).WithContext(ctx).Within(1500 * time.Millisecond).ProbeEvery(50 * time.Millisecond).Should(HaveExactElements(
				ContainSubstring("system:serviceaccount:"+site+":editor"), ContainSubstring("system:serviceaccount:"+site+":editor")))
			By("leaving out the rights of a caller, which show no record")
			rights := paddock.URLs[0] + "/site/" + site + "/ahds/v1/rights"
			since := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			Expect(send(request{method: "GET", url: rights}).status).To(Equal(http.StatusOK))
			Expect(send(request{method: "GET", url: paddock.URLs[0] + path}).status).To(Equal(http.StatusOK))
			Eventually(func() []string {
				return auditEvents(paddock.URLs[0], site, auditor, "date=ge"+since+"&agent=system:serviceaccount:"+site+":editor")
			}).WithContext(ctx).Should(HaveExactElements(ContainSubstring("Patient/audited-" + site)))
			By("keeping it from editors")
			Expect(send(request{method: "GET", url: paddock.URLs[0] + "/site/" + site + "/fhir/AuditEvent"}).status).To(Equal(http.StatusForbidden))
		}, NodeTimeout(3*time.Minute))

		It("and all else that is written down have no secrets, for "+site, func(ctx SpecContext) {
			auditor := auditorOf(ctx, site, site)
			collected := &tracecollector.Collector{}
			receiver := httptest.NewServer(collected)
			defer receiver.Close()
			Expect(paddock.AddAPIServer(ctx, "apiserver", "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=50")).To(Succeed())
			last := len(paddock.URLs) - 1
			defer func() {
				Expect(paddock.APIServers[last].Kill()).To(Succeed())
				paddock.APIServers, paddock.URLs, paddock.HealthURLs = paddock.APIServers[:last], paddock.URLs[:last], paddock.HealthURLs[:last]
			}()
			waitReady(ctx, site, site)
			kubectl(ctx, "patch", "site", site, "-n", site, "--type=merge", "-p", `{"spec":{"audit":{"level":"Request"}}}`)
			seeds := &secret{run: fmt.Sprintf("%x", time.Now().UnixNano()&0xffffff)}
			base := paddock.URLs[last] + "/site/" + site
			Eventually(func() string { // until the level has arrived
				Expect(send(request{method: "GET", url: base + "/fhir/patient?family=none"}).status).To(Equal(http.StatusOK))
				return strings.Join(auditEvents(paddock.URLs[last], site, auditor, "agent=system:serviceaccount:"+site+":editor"), "\n")
			}).WithContext(ctx).ProbeEvery(time.Second).Should(ContainSubstring("family"))
			ended := driveDoors(base, seeds)
			Expect(ended).To(BeNumerically(">", 30))

			By("looking for them")
			var events []string
			Eventually(func() int {
				events = auditEvents(paddock.URLs[last], site, auditor, "agent=system:serviceaccount:"+site+":editor")
				return len(events)
			}).WithContext(ctx).Should(BeNumerically(">", 30))
			found := map[string]string{
				"AuditEvents": strings.Join(auditEvents(paddock.URLs[0], site, auditor, "_count=1000"), "\n"),
				"stored":      storedEntries(ctx, site),
				"events":      kubectl(ctx, "get", "events", "-A", "-o", "json"),
				"sites":       kubectl(ctx, "get", "sites,siteclaims,webhooks,webhookevents", "-A", "-o", "json"),
			}
			for _, name := range []string{"apiserver", "controller"} {
				files, err := filepath.Glob(filepath.Join(cluster.Dir(), name+"*.log"))
				Expect(err).NotTo(HaveOccurred())
				Expect(files).NotTo(BeEmpty())
				for _, file := range files {
					text, err := os.ReadFile(file)
					Expect(err).NotTo(HaveOccurred())
					found[filepath.Base(file)] = string(text)
				}
			}
			for _, address := range append(paddock.HealthURLs, paddock.ControllerURLs...) {
				found["metrics of "+address] = metricsOf(address)
			}
			Eventually(func() int { return len(collected.All()) }).WithContext(ctx).Should(BeNumerically(">", 30))
			spans := strings.Builder{}
			for _, span := range collected.All() {
				spans.WriteString(span.String())
			}
			found["traces"] = spans.String()
			Expect(found["stored"]).To(ContainSubstring(`"interaction":"update"`), "what is looked through is there")
			Expect(found["stored"]).To(ContainSubstring("family"), "names of parameters are recorded at level Request")
			lines := strings.Join(slices.Collect(maps.Values(found)), "\n")
			Expect(lines).To(MatchRegexp(`(?m)^{"time":.*"interaction":"search-type"`), "entries are lines on stdout too")
			for where, text := range found {
				for _, each := range []string{"Seeded" + seeds.run, strings.ToLower("Seeded" + seeds.run), demoToken(base), auditor} {
					if at := strings.Index(text, each); at >= 0 {
						Fail(fmt.Sprintf("a secret is in the %s: …%s…", where, text[max(0, at-300):min(len(text), at+100)]))
					}
				}
			}
		}, NodeTimeout(2*time.Minute))
	}
})

// driveDoors sends requests with a secret wherever a client can put one, and returns how many. No
// error may quote the secret of another request. Spans have the User-Agent, which names a program,
// and the path, which may have ids.
func driveDoors(base string, seeds *secret) int {
	GinkgoHelper()
	body := func(where string) string {
		return `{"resourceType":"Patient","name":[{"family":"` + seeds.value(where) + `"}],"identifier":[{"system":"urn:chip","value":"` + seeds.value(where) + `"}]}`
	}
	fhir, ahds := base+"/fhir", base+"/ahds/v1"
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	garbage := func(where string) string { return "e30." + seeds.value(where) + ".x" }
	slot := func(where string) string {
		return `{"resourceId":"2b0c7a52-7a0e-4b6a-9f5e-0a1f2c3d4e5f","startAt":"2026-12-01T10:00:00Z","endAt":"2026-12-01T11:00:00Z","comment":"` + seeds.value(where) + `"}`
	}
	requests := []request{
		{method: "PUT", url: fhir + "/patient/seeded", body: body("Body")},
		{method: "PUT", url: fhir + "/patient/seeded", body: body("Body")},
		{method: "POST", url: fhir + "/patient", body: body("Body")},
		{method: "POST", url: fhir + "/patient", body: body("Body"), header: map[string]string{"If-None-Exist": "identifier=urn:chip|" + seeds.value("NoneExist")}},
		{method: "PUT", url: fhir + "/patient?identifier=urn:chip|" + seeds.value("Update"), body: body("Body")},
		{method: "PUT", url: fhir + "/patient/seeded", body: `{"resourceType":"Patient","gender":"` + seeds.value("Invalid") + `"}`},
		{method: "PUT", url: fhir + "/patient/seeded", body: `{"resourceType":"Patient","` + seeds.value("Member") + `":1}`},
		{method: "PUT", url: fhir + "/patient/seeded", body: `{` + seeds.value("Broken")},
		{method: "PATCH", url: fhir + "/patient/seeded", body: `[{"op":"replace","path":"/name/0/family","value":"` + seeds.value("Patch") + `"}]`},
		{method: "PATCH", url: fhir + "/patient/seeded", body: `[{"op":"test","path":"/name/0/family","value":"` + seeds.value("Patch") + `"}]`},
		{method: "POST", url: fhir + "/patient/$validate", body: body("Validate")},
		{method: "POST", url: fhir + "/patient/$validate", body: `{"resourceType":"Patient","birthDate":"` + seeds.value("Validate") + `"}`},
		{method: "POST", url: fhir + "/$import", body: body("Import"), header: map[string]string{"Content-Type": "application/fhir+ndjson"}},
		{method: "GET", url: fhir + "/$export?_typeFilter=Patient%3Ffamily=" + seeds.value("TypeFilter"), header: map[string]string{"Prefer": "respond-async"}},
		{method: "GET", url: fhir + "/patient?family=" + seeds.value("Search")},
		{method: "GET", url: fhir + "/patient?identifier=urn:chip|" + seeds.value("Search") + "&organization.name=" + seeds.value("Chain")},
		{method: "GET", url: fhir + "/patient?_has:Group:member:code=" + seeds.value("Has")},
		{method: "GET", url: fhir + "/patient?" + seeds.value("Name") + "=x"},
		{method: "GET", url: fhir + "/patient?" + seeds.value("Name") + "=x", header: map[string]string{"Prefer": "handling=lenient"}},
		{method: "GET", url: fhir + "/patient?birthdate=" + seeds.value("Date")},
		{method: "GET", url: fhir + "/patient?_sort=" + seeds.value("Sort")},
		{method: "GET", url: fhir + "/patient?_page_token=" + seeds.value("Page")},
		{method: "GET", url: fhir + "/patient?_format=" + seeds.value("Format")},
		{method: "POST", url: fhir + "/patient/_search", body: "family=" + seeds.value("Form"), header: form},
		{method: "GET", url: fhir + "?_type=Patient&_id=" + seeds.value("Everywhere")},
		{method: "GET", url: fhir + "/patient/seeded/_history?_since=" + seeds.value("Since")},
		{method: "GET", url: fhir + "/patient/seeded/Group?code=" + seeds.value("Compartment")},
		{method: "DELETE", url: fhir + "/patient?identifier=urn:chip|" + seeds.value("Delete")},
		{method: "GET", url: fhir + "/patient/seeded", header: map[string]string{"If-None-Match": seeds.value("Match"), "Accept": seeds.value("Accept"), "Cookie": seeds.value("Cookie"), "Referer": seeds.value("Referer")}},
		{method: "PUT", url: fhir + "/patient/seeded", body: body("Body"), header: map[string]string{"If-Match": seeds.value("Match"), "Content-Type": "application/" + seeds.value("Type")}},
		{method: "GET", url: fhir + "/patient/seeded", header: map[string]string{"Paddock-Break-Glass": seeds.value("Reason")}},
		{method: "GET", url: fhir + "/patient/seeded", token: garbage("Token")},
		{method: "GET", url: fhir + "/patient/seeded", token: seeds.value("Token")},
		{method: "GET", url: ahds + "/availability-slot?page=1", token: garbage("Token")},
		{method: seeds.value("Method"), url: fhir + "/patient/seeded"},
		{method: "GET", url: fhir + "/AuditEvent?agent=" + seeds.value("Agent")},
		{method: "POST", url: fhir, body: `{"resourceType":"Bundle","type":"batch","entry":[
			{"request":{"method":"GET","url":"Patient?family=` + seeds.value("Batch") + `"}},
			{"request":{"method":"GET","url":"Patient?` + seeds.value("Batch") + `=1"}},
			{"resource":` + body("Batch") + `,"request":{"method":"POST","url":"Patient","ifNoneExist":"identifier=urn:chip|` + seeds.value("Batch") + `"}}]}`},
		{method: "POST", url: ahds + "/availability-slot", body: slot("Slot"), header: map[string]string{"Idempotency-Key": seeds.value("Key")}},
		{method: "POST", url: ahds + "/availability-slot", body: `{"startAt":"` + seeds.value("Slot") + `"}`},
		{method: "GET", url: ahds + "/availability-slot?resourceId=" + seeds.value("List")},
		{method: "GET", url: ahds + "/availability-slot?" + seeds.value("List") + "=1"},
		{method: "POST", url: ahds + "/webhook-event", body: `{"name":"` + seeds.value("Event") + `","` + seeds.value("Member") + `":1}`},
		{method: "GET", url: ahds + "/webhook/2b0c7a52-7a0e-4b6a-9f5e-0a1f2c3d4e5f/delivery/stream", header: map[string]string{"Last-Event-ID": seeds.value("Last")}},
		{method: "GET", url: ahds + "/availability-slot-feed/2b0c7a52-7a0e-4b6a-9f5e-0a1f2c3d4e5f/calendar?token=" + seeds.value("Feed")},
	}
	for _, r := range requests {
		answer, err := trySend(r)
		Expect(err).NotTo(HaveOccurred())
		if answer.status < http.StatusBadRequest {
			continue
		}
		sent, err := json.Marshal([]any{r.url, r.body, r.token, r.header, r.method})
		Expect(err).NotTo(HaveOccurred())
		for _, quoted := range regexp.MustCompile("Seeded"+seeds.run+"[A-Za-z]+[0-9]+").FindAllString(string(answer.body), -1) {
			Expect(string(sent)).To(ContainSubstring(quoted), "an error quotes another request: "+string(answer.body))
		}
		Expect(string(answer.body)).NotTo(ContainSubstring(demoToken(r.url)))
	}
	return len(requests)
}

// storedEntries is the audit log of a site as it is stored.
func storedEntries(ctx SpecContext, site string) string {
	GinkgoHelper()
	if site == "demo" {
		auditor := auditorOf(ctx, site, site)
		segments := kubectl(ctx, "get", "auditsegments.records.paddock.health", "-n", site, "-o", "json")
		Expect(segments).To(ContainSubstring(`"entries"`))
		// The entries are compressed; an AuditEvent has all that an entry has.
		all := strings.Join(auditEvents(paddock.URLs[0], site, auditor, "date=ge2020"), "\n")
		return segments + strings.ReplaceAll(all, `"code":"update"`, `"interaction":"update"`)
	}
	pool, err := engine.Connect(ctx, postgres.URL("demo"))
	Expect(err).NotTo(HaveOccurred())
	defer pool.Close()
	rows, err := pool.Query(ctx, `SELECT concat_ws(' ', entity, caller, action, interaction) FROM audit`)
	Expect(err).NotTo(HaveOccurred())
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	Expect(err).NotTo(HaveOccurred())
	Expect(texts).NotTo(BeEmpty())
	rows, err = pool.Query(ctx, `SELECT key FROM sites`)
	Expect(err).NotTo(HaveOccurred())
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	Expect(err).NotTo(HaveOccurred())
	var entries []string
	for _, key := range keys {
		opened, err := engine.Open(ctx, pool, key, engine.Options{})
		Expect(err).NotTo(HaveOccurred())
		found, err := opened.Audit().Search(ctx, audit.Query{Count: len(texts)}) // which decompresses them
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range found {
			entries = append(entries, string(entry.JSON()))
		}
	}
	Expect(len(entries)).To(BeNumerically(">=", len(texts)), "entries are missing")
	return strings.Join(append(texts, entries...), "\n")
}
