package fhir_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
)

// exportPaths are exports of each level, with each parameter that selects records.
func exportPaths() []string {
	filter := func(query string) string { return "&_typeFilter=" + url.QueryEscape(query) }
	return []string{
		"/$export", "/%24export?_type=Patient,Device,DeviceMetric", "/$export?_since=MARK1", "/$export?_type=Patient&_elements=Patient.name",
		"/$export?_type=Patient" + filter("Patient?_security=R"), "/$export?_type=Patient" + filter("Patient?_tag:not=secret"),
		"/$export?_type=Device" + filter("Device?patient=Patient/hidden-r"), "/$export?_type=Patient" + filter("Patient?_has:Group:member:_security=R"),
		"/Patient/$export", "/Patient/$export?_type=RelatedPerson",
		"/Group/seen-a/$export", "/Group/hidden-r/$export", "/Group/dead/$export", "/Group/never/$export",
	}
}

var (
	exportedFile = regexp.MustCompile(`"url":"([^"]+)"`)
	exportJob    = regexp.MustCompile(`export/[0-9a-f-]{36}`)
)

// exported is what an export shows a caller: its manifest and its files, or why it does not start.
func (t *twin) exported(ctx context.Context, caller, path string) string {
	GinkgoHelper()
	ask := func(path string, pairs ...string) answer {
		return t.ask(question{method: "GET", path: path, header: header(append(pairs, "X-Caller", caller)...)})
	}
	a := ask(path, "Prefer", "respond-async")
	if a.status != http.StatusAccepted {
		return t.normal(a)
	}
	job := a.header.Get("Content-Location")
	Eventually(func() int { a = ask(job); return a.status }).WithContext(ctx).WithTimeout(time.Minute).ShouldNot(Equal(http.StatusAccepted), path)
	Expect(a.status).To(Equal(http.StatusOK), a.body)
	text := t.normal(a)
	for _, file := range exportedFile.FindAllStringSubmatch(a.body, -1) {
		text += "\n" + t.normal(ask(file[1], "Accept", "application/fhir+ndjson"))
	}
	return exportJob.ReplaceAllString(text, "export/JOB")
}

// compareExports compares what exports show, and reports whether one shows chief what it hides.
func (b *twins) compareExports(ctx context.Context, paths []string) (differences []string, telling bool) {
	for _, path := range paths {
		if with, without := b.with.exported(ctx, nurse, path), b.without.exported(ctx, nurse, path); with != without {
			differences = append(differences, path+"\n--- with the hidden records:\n"+with+"\n--- without:\n"+without)
		}
		telling = telling || b.with.exported(ctx, chief, path) != b.without.exported(ctx, chief, path)
	}
	return differences, telling
}

var _ = Describe("Exports of a caller who may not see some records", func() {
	kinds := []string{"Device", "DeviceMetric", "Group", "Organization", "Patient", "RelatedPerson"}
	for engine, open := range newSites {
		It("are those of a site that never had them, in "+engine, func(ctx context.Context) {
			both := openTwins(ctx, open, kinds, openPolicy, nil)
			differences, telling := both.compareExports(ctx, exportPaths())
			Expect(differences).To(BeEmpty(), "the first of them:\n%s", strings.Join(differences[:min(1, len(differences))], ""))
			Expect(telling).To(BeTrue())
		})
	}
	for name, hole := range map[string]leak{
		"searches": func(gate store.Restricted, raw store.Store) store.Restricted {
			return &leaky{Restricted: gate, search: raw.Search}
		},
		"reads": func(gate store.Restricted, raw store.Store) store.Restricted {
			return &leaky{Restricted: gate, get: raw.Get}
		},
	} {
		It("show a gate that leaks "+name, func(ctx context.Context) {
			both := openTwins(ctx, newSite, []string{"Group", "Patient"}, openPolicy, hole)
			differences, _ := both.compareExports(ctx, []string{"/$export?_type=Patient", "/Group/hidden-r/$export"})
			Expect(differences).NotTo(BeEmpty())
		})
	}
})
