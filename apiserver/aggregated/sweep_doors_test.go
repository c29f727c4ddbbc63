package aggregated_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// doors are what the aggregated API takes, as its OpenAPI document and its discovery list it:
// methods of paths, query parameters and media types of bodies of each kind of path, and verbs of
// resources.
type doors struct {
	// paths are the templates of paths, with their segments.
	paths map[string][]string
	all   []string
}

// servedDoors reads the OpenAPI document and the discovery document of the group.
func servedDoors(ctx context.Context) doors {
	GinkgoHelper()
	d := doors{paths: map[string][]string{}}
	var answer response
	Eventually(func() int {
		answer = ask(ctx, "/openapi/v3"+group, "application/json")
		return answer.status
	}).WithContext(ctx).WithTimeout(specLag).Should(Equal(http.StatusOK))
	for path, item := range decoded(answer.body)["paths"].(map[string]any) {
		item := item.(map[string]any)
		d.paths[path] = strings.Split(strings.Trim(path, "/"), "/")
		shared, _ := item["parameters"].([]any)
		for method, operation := range item {
			operation, ok := operation.(map[string]any)
			if !ok || path == group+"/" { // the discovery document itself
				continue
			}
			own, _ := operation["parameters"].([]any)
			d.add(strings.ToUpper(method), path, append(slices.Clone(shared), own...), operation)
		}
	}
	answer = ask(ctx, group, "application/json")
	Expect(answer.status).To(Equal(http.StatusOK), "%s", answer.body)
	for _, served := range decoded(answer.body)["resources"].([]any) {
		served := served.(map[string]any)
		for _, verb := range served["verbs"].([]any) {
			d.all = append(d.all, verb.(string)+" "+served["name"].(string))
		}
	}
	Expect(len(d.all)).To(BeNumerically(">", 200))
	return d
}

// add notes what one operation takes.
func (d *doors) add(method, path string, parameters []any, operation map[string]any) {
	d.all = append(d.all, method+" "+path)
	door := method + " " + shapeOf(path)
	for _, parameter := range parameters {
		if parameter := parameter.(map[string]any); parameter["in"] == "query" {
			d.all = append(d.all, door+" ?"+parameter["name"].(string))
		}
	}
	body, _ := operation["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	for mediaType := range content {
		if mediaType != "*/*" {
			d.all = append(d.all, door+" "+mediaType)
		}
	}
}

// shapeOf is a template of a path without the name of its kind: parameters and media types mean
// the same for all kinds.
func shapeOf(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		for _, kind := range kinds {
			if segment == kind.plural {
				segments[i] = "{kind}"
			}
		}
	}
	return strings.Join(segments, "/")
}

// verbsOf are the verbs of requests by method, for one object and for a collection.
var verbsOf = map[string][2]string{
	http.MethodGet: {"get", "list"}, http.MethodPost: {"create", "create"}, http.MethodPut: {"update", "update"},
	http.MethodPatch: {"patch", "patch"}, http.MethodDelete: {"delete", "deletecollection"},
}

// of are the doors that a question goes through.
func (d *doors) of(q question) []string {
	path, query, _ := strings.Cut(q.path, "?")
	if !strings.HasPrefix(path, "/apis") {
		path = group + "/namespaces/SITE" + path
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	template := ""
	for each, parts := range d.paths {
		rest := strings.HasSuffix(each, "/{path}") && len(segments) >= len(parts)
		matches := rest || len(parts) == len(segments)
		for i := 0; matches && i < len(parts); i++ {
			matches = parts[i] == segments[i] || strings.HasPrefix(parts[i], "{")
		}
		if matches && (template == "" || strings.Count(each, "{") < strings.Count(template, "{")) {
			template = each
		}
	}
	if template == "" {
		return nil
	}
	found := []string{q.method + " " + template}
	door := q.method + " " + shapeOf(template)
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		found = append(found, door+" ?"+name)
	}
	if q.contentType != "" {
		found = append(found, door+" "+q.contentType)
	}
	if verbs, known := verbsOf[q.method]; known {
		verb := verbs[1]
		resource := segments[len(segments)-1]
		if at := slices.Index(segments, "facades"); at >= 0 {
			verb, resource = verbs[0], strings.TrimSuffix("facades/"+strings.Join(segments[at+2:min(at+3, len(segments))], ""), "/")
		} else if strings.HasSuffix(template, "{name}") {
			verb, resource = verbs[0], segments[len(segments)-2]
		}
		found = append(found, verb+" "+resource)
	}
	return found
}
