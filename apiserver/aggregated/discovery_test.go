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
	// rightsLag is longer than rights are remembered.
	rightsLag = 15 * time.Second
	// specLag is longer than kube-apiserver takes to merge schemas and to notice
	// that a server is gone or back.
	specLag = time.Minute
)

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
	It("has the kind in its category, with the verbs that are served and no others", func(ctx SpecContext) {
		wide := rows(must(ctx, "api-resources", "--categories=fhir", "-o", "wide", "--no-headers"))
		Expect(wide).To(Equal([][]string{{"patients", "pat", "r4.fhir.paddock.health/v1alpha1", "true", "Patient", "get,list", "fhir"}}))
		Expect(must(ctx, "api-resources", "--api-group=apps", "-o", "name")).To(ContainSubstring("deployments.apps"), "the rest is there too")
	})

	It("reports the APIService as available", func(ctx SpecContext) {
		must(ctx, "wait", "--for=condition=Available", "--timeout=30s", "apiservice/v1alpha1.r4.fhir.paddock.health")
	})

	It("explains the kind", func(ctx SpecContext) {
		Eventually(kubectl).WithContext(ctx).WithTimeout(specLag).WithArguments("explain", "patient").
			Should(And(ContainSubstring("KIND:       Patient"), ContainSubstring("spec\t<Object> -required-")))
		Expect(must(ctx, "explain", "patient.spec")).To(ContainSubstring("without resourceType and id"))
		Expect(must(ctx, "explain", "patient.metadata.generation")).To(ContainSubstring("FIELD: generation <integer>"))
	})

	It("adds sound schemas to the cluster's", func(ctx SpecContext) {
		const kind = "health.paddock.fhir.r4.v1alpha1.Patient"
		Eventually(func(g Gomega) {
			expectSound(ctx, g, "/openapi/v3"+group, "#/components/schemas", kind)
			expectSound(ctx, g, "/openapi/v2", "#/definitions", kind)
		}).WithContext(ctx).WithTimeout(specLag).Should(Succeed())
	})

	It("does not disturb kubectl with other kinds", func(ctx SpecContext) {
		apply(ctx, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unrelated, namespace: default}\ndata: {a: b}\n")
		Expect(must(ctx, "get", "configmap", "unrelated", "-n", "default", "-o", "jsonpath={.data.a}")).To(Equal("b"))
		Expect(must(ctx, "explain", "pod.spec.containers")).To(ContainSubstring("Container"))
	})
})
