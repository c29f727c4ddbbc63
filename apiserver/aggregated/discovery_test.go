package aggregated_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	tokenLife = time.Hour
	// specLag is longer than kube-apiserver takes to merge schemas and to notice
	// that a server is gone or back.
	specLag = time.Minute
)

// kinds are all that are served, in the order in which kubectl lists them.
var kinds = []struct{ plural, short, kind string }{
	{"devicedefinitions", "devdef", "DeviceDefinition"},
	{"devicemetrics", "devmet", "DeviceMetric"},
	{"devices", "fhirdev", "Device"},
	{"endpoints", "fhirep", "Endpoint"},
	{"groups", "fhirgrp", "Group"},
	{"healthcareservices", "hcsvc", "HealthcareService"},
	{"locations", "loc", "Location"},
	{"organizationaffiliations", "orgaff", "OrganizationAffiliation"},
	{"organizations", "org", "Organization"},
	{"patients", "pat", "Patient"},
	{"persons", "pers", "Person"},
	{"practitionerroles", "pracrole", "PractitionerRole"},
	{"practitioners", "prac", "Practitioner"},
	{"relatedpersons", "relpers", "RelatedPerson"},
}

// verbs are those that are served.
const verbs = "create,delete,get,list,patch,update"

// resourceNames are how kubectl lists them with -o name.
func resourceNames() string {
	var names strings.Builder
	for _, kind := range kinds {
		names.WriteString(kind.plural + ".r4.fhir.paddock.health\n")
	}
	return names.String()
}

// references collects where the $refs in a document lead.
func references(value any, into map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			into[ref] = true
		}
		for _, member := range value {
			references(member, into)
		}
	case []any:
		for _, member := range value {
			references(member, into)
		}
	}
}

// at follows a JSON pointer (RFC 6901) through objects; nil when it leads nowhere.
func at(document any, pointer string) any {
	found := document
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		object, _ := found.(map[string]any)
		found = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return found
}

// expectSound reads an OpenAPI document with a schema in it, and follows all
// references. Where schemas of one name differ, kube-apiserver gives one of them
// another name, which ends in a number: ours must not.
func expectSound(ctx context.Context, g Gomega, path, schemas, kind string) {
	answer := ask(ctx, path, "application/json")
	g.Expect(answer.status).To(Equal(http.StatusOK))
	var document any
	g.Expect(json.Unmarshal(answer.body, &document)).To(Succeed())
	g.Expect(at(document, schemas)).To(HaveKey(kind))
	g.Expect(at(document, schemas)).NotTo(HaveKey(MatchRegexp(`_v\d+$`)))
	all := map[string]bool{}
	references(document, all)
	g.Expect(all).NotTo(BeEmpty())
	for ref := range all {
		g.Expect(at(document, ref)).NotTo(BeNil(), "%s: %s leads nowhere", path, ref)
	}
}

var _ = Describe("discovery", func() {
	It("has the kinds in their category, with the verbs that are served and no others", func(ctx SpecContext) {
		wide := rows(must(ctx, "api-resources", "--categories=fhir", "-o", "wide", "--no-headers"))
		var want [][]string
		for _, kind := range kinds {
			want = append(want, []string{kind.plural, kind.short, "r4.fhir.paddock.health/v1alpha1", "true", kind.kind, verbs, "fhir"})
		}
		Expect(wide).To(Equal(want))
		Expect(must(ctx, "api-resources", "--api-group=apps", "-o", "name")).To(ContainSubstring("deployments.apps"), "the rest is there too")
	})

	It("takes every kind by its plural, its singular and its short name", func(ctx SpecContext) {
		for _, kind := range kinds {
			for _, name := range []string{kind.plural + ".r4.fhir.paddock.health", strings.ToLower(kind.kind) + ".r4.fhir.paddock.health", kind.short} {
				Expect(refused(ctx, "get", name, "never", "-n", "demo")).To(ContainSubstring(`(NotFound): ` + kind.plural + `.r4.fhir.paddock.health "never" not found`))
			}
		}
		Expect(refused(ctx, "get", "endpoints", "never", "-n", "demo")).To(ContainSubstring(`(NotFound): endpoints "never" not found`), "the core API's")
	})

	It("reports the APIService as available", func(ctx SpecContext) {
		must(ctx, "wait", "--for=condition=Available", "--timeout=30s", "apiservice/v1alpha1.r4.fhir.paddock.health")
	})

	It("adds sound schemas to the cluster's", func(ctx SpecContext) {
		for _, kind := range kinds {
			name := "health.paddock.fhir.r4.v1alpha1." + kind.kind
			Eventually(func(g Gomega) {
				expectSound(ctx, g, "/openapi/v3"+group, "#/components/schemas", name)
				expectSound(ctx, g, "/openapi/v2", "#/definitions", name)
			}).WithContext(ctx).WithTimeout(specLag).Should(Succeed())
		}
	})

	It("does not disturb kubectl with other kinds", func(ctx SpecContext) {
		apply(ctx, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unrelated, namespace: default}\ndata: {a: b}\n")
		Expect(must(ctx, "get", "configmap", "unrelated", "-n", "default", "-o", "jsonpath={.data.a}")).To(Equal("b"))
		Expect(must(ctx, "explain", "pod.spec.containers")).To(ContainSubstring("Container"))
	})
})
