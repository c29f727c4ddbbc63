package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// clerk books slots of an hour that overlap those of the other clerk, and gives some of them up.
type clerk struct {
	*caller
	n int
	// kept has the keys of acknowledged bookings by the id of the slot.
	kept map[string]string
	// refused are the keys of bookings that were refused.
	refused []string
}

// resource is that of both clerks of a fault at a site.
func (c *clerk) resource() string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(c.site+c.prefix[:len(c.prefix)-2])).String()
}

func (c *clerk) round(ctx context.Context) bool {
	c.n++
	key := uuid.NewString()
	start := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(c.n%12) * 30 * time.Minute)
	body := fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q,"isBooked":true,"notes":%q}`,
		start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), c.resource(), c.resource(), key)
	got, _ := c.repeat(ctx, nil, http.MethodPost, "/ahds/v1/availability-slot", body, map[string]string{"Idempotency-Key": key},
		http.StatusOK, http.StatusCreated, http.StatusConflict)
	switch got.status {
	case 0:
		return false
	case http.StatusConflict:
		c.refused = append(c.refused, key)
		if len(c.kept) > 3 {
			return c.giveUp(ctx)
		}
		return true
	}
	var slot struct{ AvailabilitySlotID string }
	if err := json.Unmarshal([]byte(got.body), &slot); err != nil {
		c.fail("%v in %s", err, got.body)
	}
	c.kept[slot.AvailabilitySlotID] = key
	return true
}

// giveUp deletes one booking.
func (c *clerk) giveUp(ctx context.Context) bool {
	for id := range c.kept {
		delete(c.kept, id)
		got, _ := c.repeat(ctx, nil, http.MethodDelete, "/ahds/v1/availability-slot/"+id, "", nil, http.StatusNoContent, http.StatusNotFound)
		return got.status != 0
	}
	return true
}

func (c *clerk) verify(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) { c.check(ctx, g) }).Should(Succeed()) // in the cluster, a list may be late
}

func (c *clerk) check(ctx context.Context, g Gomega) {
	GinkgoHelper()
	got := c.get(ctx, "/ahds/v1/availability-slot?pageSize=100&resourceId="+c.resource())
	var page struct {
		Data []struct {
			AvailabilitySlotID, Notes string
			IsActive, IsBooked        bool
			StartAt, EndAt            time.Time
		}
	}
	g.Expect(json.Unmarshal([]byte(got.body), &page)).To(Succeed(), got.body)
	keys := map[string]string{}
	for i, slot := range page.Data {
		g.Expect(slot.IsActive && slot.IsBooked).To(BeTrue(), "%+v", slot)
		g.Expect(keys).NotTo(HaveKey(slot.Notes), "a booking that was made twice")
		keys[slot.Notes] = slot.AvailabilitySlotID
		for _, other := range page.Data[:i] {
			g.Expect(slot.StartAt.Before(other.EndAt) && other.StartAt.Before(slot.EndAt)).To(BeFalse(), "%+v and %+v overlap", slot, other)
		}
	}
	for id, key := range c.kept {
		g.Expect(keys).To(HaveKeyWithValue(key, id), "an acknowledged booking")
	}
	for _, key := range c.refused {
		g.Expect(keys).NotTo(HaveKey(key), "a booking that was refused")
	}
}

// bundled is the number of records of a transaction. Written one by one, they take so long that a fault
// is likely to meet some of them.
const bundled = 16

// bundler writes records by one transaction. All have the number of the transaction.
type bundler struct {
	*caller
	n int
	// acknowledged is the number of the last acknowledged transaction.
	acknowledged int
}

func (b *bundler) ids() []string {
	ids := make([]string, bundled)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", b.prefix, i)
	}
	return ids
}

func (b *bundler) path() string { return "/fhir/patient?_count=100&_id=" + strings.Join(b.ids(), ",") }

func (b *bundler) round(ctx context.Context) bool {
	b.n++
	var entries []string
	for _, id := range b.ids() {
		entries = append(entries, fmt.Sprintf(`{"request":{"method":"PUT","url":"Patient/%[1]s"},"resource":{"resourceType":"Patient","id":%[1]q,"multipleBirthInteger":%[2]d}}`, id, b.n))
	}
	body := `{"resourceType":"Bundle","type":"transaction","entry":[` + strings.Join(entries, ",") + `]}`
	got, _ := b.repeat(ctx, func() { b.whole(ctx) }, http.MethodPost, "/fhir", body, nil, http.StatusOK)
	if got.status != http.StatusOK {
		return false
	}
	b.acknowledged = b.n
	return true
}

// whole checks that all records are of one transaction, as one statement reads them.
func (b *bundler) whole(ctx context.Context) {
	got := b.send(ctx, 1, http.MethodGet, b.path(), "", nil, http.StatusOK)
	if got.status == http.StatusOK {
		b.check(b.entries(got))
	}
}

func (b *bundler) check(found []map[string]any) {
	if len(found) == 0 && b.acknowledged == 0 {
		return
	}
	numbers := map[string]bool{}
	for _, each := range found {
		numbers[fmt.Sprint(each["multipleBirthInteger"], " in version ", versionID(each))] = true
	}
	if len(found) != bundled || len(numbers) != 1 {
		b.fail("a part of a transaction: %d records, with the numbers %v", len(found), numbers)
		return
	}
	n := int(found[0]["multipleBirthInteger"].(float64))
	if n < b.acknowledged || n > b.n || versionID(found[0]) != fmt.Sprint(n) {
		b.fail("number %d in version %s, acknowledged was %d, sent %d", n, versionID(found[0]), b.acknowledged, b.n)
	}
}

func (b *bundler) verify(ctx context.Context) {
	GinkgoHelper()
	b.check(b.entries(b.get(ctx, b.path())))
}

// purger creates a Patient with its compartment and purges both.
type purger struct {
	*caller
	n int
	// gone are the Patients whose purge was acknowledged.
	gone []string
}

// owners is the number of RelatedPersons of a Patient.
const owners = 3

func (p *purger) ids(patient string) []string {
	all := []string{patient}
	for i := range owners {
		all = append(all, fmt.Sprintf("%s-%d", patient, i))
	}
	return all
}

func (p *purger) round(ctx context.Context) bool {
	p.n++
	patient := fmt.Sprintf("%s-%d", p.prefix, p.n)
	for i, id := range p.ids(patient) {
		path, body := "/fhir/patient/"+id, fmt.Sprintf(`{"resourceType":"Patient","id":%q}`, id)
		if i > 0 {
			path, body = "/fhir/related-person/"+id, fmt.Sprintf(`{"resourceType":"RelatedPerson","id":%q,"patient":{"reference":"Patient/%s"}}`, id, patient)
		}
		if got, _ := p.repeat(ctx, nil, http.MethodPut, path, body, nil, http.StatusOK, http.StatusCreated); got.status == 0 {
			return false
		}
	}
	got, attempts := p.repeat(ctx, func() { p.whole(ctx, patient) }, http.MethodPost, "/fhir/patient/"+patient+"/$purge", "", nil, http.StatusOK, http.StatusNotFound)
	switch {
	case got.status == 0:
		return false
	case got.status == http.StatusNotFound && attempts == 1:
		p.fail("Patient %s, whose creation was acknowledged, is not there: %s", patient, got.body)
	}
	p.gone = append(p.gone, patient)
	return true
}

// whole checks after a purge with an unknown outcome that the Patient is there as long as a record of
// its compartment, and in Postgres all of them. There one search reads all; in the cluster a search may
// be late, and reads do not happen at once, but the Patient is the last to go.
func (p *purger) whole(ctx context.Context, patient string) {
	if p.postgres {
		got := p.send(ctx, 1, http.MethodGet, p.compartment(patient), "", nil, http.StatusOK)
		if got.status != http.StatusOK {
			return
		}
		if found := len(p.entries(got)); found != 0 && found != 1+owners {
			p.fail("%d records of the compartment of %s are left", found, patient)
		}
		return
	}
	got := p.send(ctx, 1, http.MethodGet, "/fhir/patient/"+patient, "", nil, http.StatusOK, http.StatusNotFound)
	if got.status != http.StatusNotFound {
		return
	}
	for _, id := range p.ids(patient)[1:] {
		if got := p.send(ctx, 1, http.MethodGet, "/fhir/related-person/"+id, "", nil, http.StatusOK, http.StatusNotFound); got.status == http.StatusOK {
			p.fail("RelatedPerson %s is left, and its Patient is purged", id)
		}
	}
}

// compartment is the search of a Patient with its compartment.
func (p *purger) compartment(patient string) string {
	return "/fhir?_type=Patient,RelatedPerson&_id=" + strings.Join(p.ids(patient), ",")
}

func (p *purger) verify(ctx context.Context) {
	GinkgoHelper()
	for _, patient := range p.gone {
		for i, id := range p.ids(patient) {
			path := "/fhir/patient/"
			if i > 0 {
				path = "/fhir/related-person/"
			}
			Expect(p.get(ctx, path+id).status).To(Equal(http.StatusNotFound), "what was purged with %s: %s", patient, id)
		}
		Eventually(ctx, func() []map[string]any { return p.entries(p.get(ctx, p.compartment(patient))) }).Should(BeEmpty())
	}
	if len(p.gone) == 0 {
		return
	}
	for i, id := range p.ids(p.gone[len(p.gone)-1]) {
		path := "/fhir/patient/"
		if i > 0 {
			path = "/fhir/related-person/"
		}
		Expect(p.get(ctx, path+id+"/_history/1").status).To(Equal(http.StatusNotFound), "the history of %s", id)
	}
}

// importer imports lines, and repeats an import until all of them are written.
type importer struct {
	*caller
	n    int
	done []int
}

// importLines is the number of lines of an import.
const importLines = 20

func (i *importer) ids(n int) []string {
	ids := make([]string, importLines)
	for line := range ids {
		ids[line] = fmt.Sprintf("%s-%d-%d", i.prefix, n, line)
	}
	return ids
}

func (i *importer) round(ctx context.Context) bool {
	i.n++
	var lines strings.Builder
	for _, id := range i.ids(i.n) {
		fmt.Fprintf(&lines, `{"resourceType":"Person","id":%q}`+"\n", id)
	}
	for ctx.Err() == nil {
		got, _ := i.repeat(ctx, nil, http.MethodPost, "/fhir/$import", lines.String(), map[string]string{"Content-Type": "application/fhir+ndjson"}, http.StatusOK)
		if got.status != http.StatusOK {
			return false
		}
		var counts struct {
			Parameter []struct {
				Name         string
				ValueInteger int
			}
		}
		if err := json.Unmarshal([]byte(got.body), &counts); err != nil {
			i.fail("%v in %s", err, got.body)
			return false
		}
		written := 0
		for _, each := range counts.Parameter {
			if each.Name == "created" || each.Name == "unchanged" {
				written += each.ValueInteger
			}
		}
		if written == importLines {
			i.done = append(i.done, i.n)
			return true
		}
		i.fail("of %d lines, %d were written: %s", importLines, written, got.body)
	}
	return false
}

func (i *importer) verify(ctx context.Context) {
	GinkgoHelper()
	for _, n := range i.done {
		var found []map[string]any
		Eventually(ctx, func() []map[string]any { // in the cluster, a search may be late
			found = i.entries(i.get(ctx, "/fhir/person?_count=100&_id="+strings.Join(i.ids(n), ",")))
			return found
		}).Should(HaveLen(importLines))
		for _, each := range found {
			Expect(versionID(each)).To(Equal("1"), "%v was written twice", each["id"])
		}
	}
}

// exported is the number of Locations that are exported. No workload writes others.
const exported = 40

// fillForExport writes the records that exporters export, and waits until the API server of the caller
// finds them.
func fillForExport(ctx context.Context, v *caller) {
	GinkgoHelper()
	var lines strings.Builder
	for n := range exported {
		fmt.Fprintf(&lines, `{"resourceType":"Location","id":"export-%d"}`+"\n", n)
	}
	v.repeat(ctx, nil, http.MethodPost, "/fhir/$import", lines.String(), map[string]string{"Content-Type": "application/fhir+ndjson"}, http.StatusOK)
	Eventually(ctx, func() int {
		return len(v.entries(v.send(ctx, 0, http.MethodGet, "/fhir/location?_count=100", "", nil, http.StatusOK)))
	}).Should(Equal(exported))
	Expect(v.failures).To(BeEmpty())
}

// exporter starts an export before the fault. During the fault it asks for its status and downloads its
// files again and again.
type exporter struct {
	*caller
	job       string
	downloads int
}

func (e *exporter) round(ctx context.Context) bool {
	if e.job == "" {
		got, _ := e.repeat(ctx, nil, http.MethodGet, "/fhir/$export?_type=Location", "", map[string]string{"Prefer": "respond-async"}, http.StatusAccepted)
		if got.status != http.StatusAccepted {
			return false
		}
		e.job = e.path(got.header.Get("Content-Location"))
		return true
	}
	status, _ := e.repeat(ctx, nil, http.MethodGet, e.job, "", nil, http.StatusOK, http.StatusAccepted)
	if status.status != http.StatusOK {
		return status.status == http.StatusAccepted
	}
	var manifest struct{ Output []struct{ URL string } }
	if err := json.Unmarshal([]byte(status.body), &manifest); err != nil {
		e.fail("%v in %s", err, status.body)
	}
	found := map[string]int{}
	for _, file := range manifest.Output {
		got, _ := e.repeat(ctx, nil, http.MethodGet, e.path(file.URL), "", nil, http.StatusOK)
		if got.status != http.StatusOK {
			return false
		}
		for line := range strings.Lines(got.body) {
			var resource struct{ ID string }
			if err := json.Unmarshal([]byte(line), &resource); err != nil {
				e.fail("a line of a file that ends early: %v in %s", err, line)
			}
			found[resource.ID]++
		}
	}
	for n := range exported {
		if id := fmt.Sprintf("export-%d", n); found[id] != 1 {
			e.fail("%s is %d times in the export", id, found[id])
		}
	}
	if len(found) != exported {
		e.fail("%d records are in the export", len(found))
	}
	e.downloads++
	return true
}

// path is that of a URL below the site.
func (e *exporter) path(url string) string {
	_, path, _ := strings.Cut(url, "/site/"+e.site)
	return path
}

func (e *exporter) verify(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() int { e.round(ctx); return e.downloads }).Should(BeNumerically(">", 0)) // the job may have been slow
	Eventually(ctx, func() int { return e.send(ctx, 0, http.MethodDelete, e.job, "", nil, http.StatusAccepted).status }).Should(Equal(http.StatusAccepted))
}

// applier changes a Patient by kubectl. Each change is repeated until it is acknowledged.
type applier struct {
	*caller
	n, acknowledged int
}

func (a *applier) round(ctx context.Context) bool {
	a.n++
	if a.n == 1 { // no other name may be created by kubectl patch
		got, _ := a.repeat(ctx, nil, http.MethodPut, "/fhir/patient/"+a.prefix, fmt.Sprintf(`{"resourceType":"Patient","id":%q,"multipleBirthInteger":1}`, a.prefix), nil, http.StatusOK, http.StatusCreated)
		if got.status == 0 {
			return false
		}
		a.acknowledged = 1
		return true
	}
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientPatience)
		_, err := paddock.Kubectl(limited, "patch", "patient", a.prefix, "-n", a.site, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"multipleBirthInteger":%d}}`, a.n))
		cancel()
		if err == nil {
			a.acknowledged = a.n
			return true
		}
		for _, wrong := range []string{"(Forbidden)", "(Unauthorized)", "(Invalid)", "(Conflict)", "(NotFound)", "(InternalError)"} {
			if strings.Contains(err.Error(), wrong) {
				a.fail("kubectl patch: %v", err)
			}
		}
		idle(ctx, 200*time.Millisecond)
	}
	return false
}

func (a *applier) verify(ctx context.Context) {
	GinkgoHelper()
	var patient map[string]any
	Expect(json.Unmarshal([]byte(a.get(ctx, "/fhir/patient/"+a.prefix).body), &patient)).To(Succeed())
	n := int(patient["multipleBirthInteger"].(float64))
	Expect(n).To(And(BeNumerically(">=", a.acknowledged), BeNumerically("<=", a.n)), "%v", patient)
	Expect(versionID(patient)).To(Equal(fmt.Sprint(n)), "a change that was made twice, or was lost")
}
