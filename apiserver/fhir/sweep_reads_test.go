package fhir_test

import (
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// idsOf are the ids to ask for of a type: hidden ones, visible ones, and one that never was.
func idsOf(kind string) []string {
	ids := append(append([]string{"never", "HIDDEN-R"}, hiddenIDs...), visibleIDs...)
	if kind == "Device" || kind == "DeviceMetric" {
		ids = append(ids, "linked")
	}
	return ids
}

// readQuestions are reads of the records of a type, of their versions and histories.
func readQuestions(kind string) []question {
	var questions []question
	ask := func(method, path string, pairs ...string) {
		questions = append(questions, question{method: method, path: path, header: header(pairs...), walks: strings.Contains(path, "istory")})
	}
	ids := []string{"never", "HIDDEN-R", "raised", "again", "dead", "dead-raised", "seen-c", "seen-d"}
	if kind == "Patient" || kind == "Device" || kind == "DeviceMetric" { // what hides a record is the same for other types
		ids = idsOf(kind)
	}
	for _, id := range ids {
		record := "/" + kind + "/" + id
		ask("GET", record)
		ask("GET", record, "Accept", "application/json")
		ask("GET", record, "If-None-Match", "*")
		ask("GET", record, "If-None-Match", `W/"2", W/"3", W/"4"`)
		ask("GET", record, "If-Modified-Since", "Fri, 31 Dec 2010 23:59:59 GMT")
		for _, method := range []string{"GET", "HEAD"} {
			for _, version := range []string{"1", "2", "3", "4", "5"} {
				ask(method, record+"/_history/"+version)
			}
			ask(method, record+"/_history/1", "If-None-Match", "*")
			ask(method, record, "If-None-Match", `W/"1"`)
			ask(method, record, "If-Modified-Since", "Fri, 31 Dec 2100 23:59:59 GMT")
			ask(method, record+"/_history")
			ask(method, record+"/history", "Accept", "application/json")
		}
		ask("GET", record+"?_summary=true")
		ask("GET", record+"?_elements=id")
		for _, query := range []string{"_count=1", "_summary=count", "_since=MARK1", "_at=MARK1", "_at=gtMARK2"} {
			ask("GET", record+"/_history?"+query)
		}
	}
	for _, query := range historyQueries() {
		ask("GET", "/"+kind+"/_history?"+query)
		ask("GET", "/"+kind+"/_history?"+query, "Accept", "application/json")
	}
	ask("HEAD", "/"+kind+"/_history")
	ask("HEAD", "/"+kind)
	return append(questions, slices.Concat(compartmentQuestions(kind), everythingQuestions(kind), bulkQuestions())...)
}

// bulkQuestions are requests of exports and imports whose responses name no job. What an export has is
// compared in its own specs.
func bulkQuestions() []question {
	var questions []question
	ask := func(method, path, body string, pairs ...string) {
		questions = append(questions, question{method: method, path: path, body: body, header: header(pairs...)})
	}
	for _, operation := range []string{"$", "%24"} {
		for _, path := range []string{"", "/Patient", "/Patient/seen-a", "/Group/seen-a", "/Group/hidden-r"} {
			for _, method := range []string{"GET", "HEAD"} {
				ask(method, path+"/"+operation+"export", "")
			}
		}
		for _, path := range []string{"export/never", "export/never/1"} {
			for _, method := range []string{"GET", "HEAD"} {
				ask(method, "/"+operation+path, "")
			}
		}
		ask("DELETE", "/"+operation+"export/never", "")
		ask("POST", "/"+operation+"import?dryRun=true", `{"resourceType":"Patient","id":"hidden-r"}`, "Content-Type", "application/fhir+ndjson")
	}
	return questions
}

// everythingQuestions are those of the operation $everything on records of a type.
func everythingQuestions(kind string) []question {
	if kind != "Patient" {
		path := "/" + kind + "/hidden-r/$everything"
		return []question{{method: "GET", path: path}, {method: "POST", path: path}}
	}
	var questions []question
	for _, id := range idsOf(kind) {
		path := "/" + kind + "/" + id + "/$everything"
		questions = append(questions, question{method: "HEAD", path: path}, question{method: "HEAD", path: "/patient/" + id + "/%24everything"}, question{method: "GET", path: "/patient/" + id + "/%24everything"})
		for _, query := range []string{
			"", "_count=1", "_count=0", "_summary=count", "_summary=true&_count=3", "_elements=id", "_since=MARK0", "_since=MARK1&_count=2", "_since=MARK2", "_page_token=nonsense",
			"_type=Organization", "_type=Practitioner,PractitionerRole&_count=1", "_type=Patient", "_type=Group&_type=Person,RelatedPerson", "_type=Device,Location", "_type=DeviceMetric",
		} {
			questions = append(questions, question{method: "GET", path: path + "?" + query, walks: true, covers: "$everything?" + query})
		}
		for _, spelling := range []string{path, "/patient/" + id + "/%24everything"} {
			questions = append(questions, question{
				method: "POST", path: spelling, body: parameters(`{"name":"_count","valueInteger":2}`), header: header("Content-Type", "application/fhir+json"),
				walks: true, covers: "$everything by POST",
			})
		}
	}
	return questions
}

func historyQueries() []string {
	queries := []string{"", "_count=1", "_count=0", "_count=2&_since=2020", "_summary=count", "_summary=true", "_elements=id", "_at=2020", "_page_token=nonsense"}
	for _, mark := range []string{"MARK0", "MARK1", "MARK2"} {
		for _, name := range []string{"_since", "_at"} {
			queries = append(queries, name+"="+mark, name+"="+mark+"&_count=3")
		}
		queries = append(queries, "_at=gt"+mark, "_at=lt"+mark)
	}
	return queries
}

// historyControls are the parameters that historyQueries has questions for.
var historyControls = []string{"_at", "_count", "_elements", "_format", "_page_token", "_pretty", "_since", "_summary"}

// compartmentQuestions are searches in the compartments of records of a type.
func compartmentQuestions(kind string) []question {
	var questions []question
	of, ok := r4.CompartmentOf(kind)
	if !ok {
		return []question{{method: "GET", path: "/" + kind + "/hidden-r/*"}, {method: "GET", path: "/" + kind + "/hidden-r/Patient"}}
	}
	form := header("Content-Type", "application/x-www-form-urlencoded")
	for _, id := range idsOf(kind) {
		for _, members := range append(of.Types(), "*", "Endpoint") {
			path := "/" + kind + "/" + id + "/" + members
			questions = append(questions,
				question{method: "GET", path: path, walks: true},
				question{method: "HEAD", path: path},
				question{method: "GET", path: path + "?_summary=count"},
				question{method: "GET", path: path + "?_include=*&_revinclude=*&_count=1", walks: true},
				question{method: "POST", path: path + "/_search", body: "_tag=secret", header: form})
		}
		questions = append(questions, question{method: "POST", path: "/" + kind + "/" + id + "/_search", body: "_count=5", header: form})
	}
	return questions
}

// siteQuestions are those about the site as a whole.
func siteQuestions() []question {
	questions := []question{
		{method: "GET", path: "/metadata"},
		{method: "HEAD", path: "/metadata"},
		{method: "GET", path: "/.well-known/smart-configuration"},
		{method: "HEAD", path: "/.well-known/smart-configuration"},
		{method: "GET", path: "/AuditEvent"},
		{method: "HEAD", path: "/AuditEvent"},
		{method: "GET", path: "/AuditEvent/1"},
		{method: "OPTIONS", path: "/"},
		{method: "HEAD", path: "/"},
		{method: "HEAD", path: "/_history"},
		{method: "POST", path: "/_search", body: "_tag=secret", header: header("Content-Type", "application/x-www-form-urlencoded")},
		{method: "POST", path: "/_search", body: "_type=Patient,Device&_count=1", header: header("Content-Type", "application/x-www-form-urlencoded")},
	}
	for _, query := range []string{
		"", "_count=1000", "_count=7", "_count=0", "_summary=count", "_total=accurate&_count=1", "_type=Patient,Organization", "_type=Device,DeviceMetric&_total=accurate",
		"_id=hidden-r", "_id=seen-a", "_security=R", "_security:not=R", "_security:missing=true", "_tag=secret", "_tag:not=secret", "_profile=http://secret.example/p", "_profile:below=http://secret.example",
		"_lastUpdated=gtMARK1", "_lastUpdated=ltMARK2", "_sort=_lastUpdated", "_sort=-_lastUpdated", "_sort=_id", "_sort=-_id&_count=3", "_source=http://xylo.example/s/t",
		"_include=*&_count=3", "_revinclude=*&_count=3", "_type=Patient&_has:Group:member:_security=R", "_type=Patient,Person&identifier=" + url.QueryEscape("urn:i|"+hiddenWord),
	} {
		questions = append(questions, question{method: "GET", path: "/?" + query, walks: true})
	}
	for _, query := range historyQueries() {
		questions = append(questions, question{method: "GET", path: "/_history?" + query, walks: true})
	}
	return questions
}
