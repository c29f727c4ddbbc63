package aggregated_test

import (
	"net/http"
	"strings"
)

// hiddenNames are those of the hidden records of the sweep. Some sort before the visible ones, some
// after them.
var hiddenNames = []string{"dead", "hidden-r", "linked", "raised", "tagged"}

// Labels that hide a record from nurse.
const (
	labelR      = `"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"R"}]}`
	labelSecret = `"meta":{"tag":[{"system":"urn:tags","code":"secret"}]}`
	labelNone   = `"meta":{"tag":[{"system":"urn:tags","code":"plain"}]}`
)

const (
	tableJSON    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadataJSON = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	listJSON     = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// required are the elements that records of a kind must have.
var required = map[string]string{
	"DeviceMetric":  `,"type":{"text":"t"},"category":"unspecified"`,
	"Endpoint":      `,"status":"active","connectionType":{"code":"c"},"payloadType":[{"text":"t"}],"address":"https://e.example"`,
	"Group":         `,"type":"animal","actual":true`,
	"Organization":  `,"name":"n"`,
	"RelatedPerson": `,"patient":{"reference":"Patient/seen-a"}`,
}

// sweptObject is an object of a kind as JSON.
func sweptObject(kind, metadata, spec string) string {
	return `{"apiVersion":"r4.fhir.paddock.health/v1alpha1","kind":"` + kind + `","metadata":{` + metadata + `},"spec":{` + spec + required[kind] + `}}`
}

// thorough reports whether a kind has hidden records of each sort and is asked about with all
// options. What hides a record of another kind, and what the options do, is the same.
func thorough(kind string) bool { return kind == "Patient" }

// readQuestions are reads of one object and of lists.
func readQuestions(kind, plural string) []question {
	var questions []question
	get := func(path string, accepts ...string) {
		for _, accept := range append(accepts, "") {
			questions = append(questions, question{method: http.MethodGet, path: "/" + plural + path, accept: accept})
		}
	}
	names := []string{"seen-a", "hidden-r"}
	switch {
	case thorough(kind):
		names = append([]string{"never", "HIDDEN-R", "seen-a"}, hiddenNames...)
	case kind == "Device", kind == "DeviceMetric":
		names = append(names, "linked")
	}
	for _, name := range names {
		get("/" + name)
		if thorough(kind) {
			get("/"+name+"?pretty=true", "application/yaml", tableJSON, metadataJSON)
			for _, version := range []string{"0", "1", "999999999"} {
				get("/" + name + "?resourceVersion=" + version)
			}
		}
	}
	get("", tableJSON)
	for _, query := range []string{"limit=1", "labelSelector=word%3Dxylo&limit=1", "fieldSelector=metadata.name%3Dhidden-r"} {
		get("?" + query)
	}
	if thorough(kind) {
		for _, query := range listQueries {
			get("?" + query)
		}
		get("?limit=2", tableJSON, listJSON, "application/yaml")
		for _, query := range []string{"limit=1", "labelSelector=word%3Dxylo", "fieldSelector=metadata.name%3Dhidden-r", strings.Join(listQueries, "&")} {
			questions = append(questions, question{method: http.MethodGet, path: group + "/" + plural + "?" + query})
		}
	} else {
		questions = append(questions, question{method: http.MethodGet, path: group + "/" + plural})
	}
	return questions
}

// listQueries are options of lists. Each option that the API serves is in one of them.
var listQueries = []string{
	"watch=true&timeoutSeconds=1", "labelSelector=word%3Dxylo", "limit=3", "limit=1000", "pretty=true", "allowWatchBookmarks=true", "timeoutSeconds=30", "shardSelector=x",
	"labelSelector=word", "labelSelector=%21word", "labelSelector=word%21%3Dxylo", "labelSelector=word+in+%28xylo%2Cquartz%29", "labelSelector=only%3Dhidden",
	"labelSelector=only%3Dhidden&limit=1", "labelSelector=word%21%3Dxylo&limit=1", "labelSelector=%3D%3D",
	"fieldSelector=metadata.name%3Dtagged", "fieldSelector=metadata.name%3Dseen-a", "fieldSelector=metadata.name%21%3Dhidden-r", "fieldSelector=metadata.name%3Dhidden-r&limit=1",
	"fieldSelector=metadata.name%3Dhidden-r%2Cmetadata.name%3Dseen-a", "fieldSelector=metadata.name%3Dhidden-r&labelSelector=word%3Dxylo", "fieldSelector=spec.active%3Dtrue",
	"resourceVersion=0", "resourceVersion=1", "resourceVersion=999999999", "resourceVersion=1&limit=1", "resourceVersion=1&resourceVersionMatch=NotOlderThan",
	"resourceVersion=1&resourceVersionMatch=Exact", "resourceVersion=VERSION:hidden-r&resourceVersionMatch=Exact", "resourceVersion=0&limit=1",
	"continue=nonsense", "limit=1&continue=nonsense", "watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
}

// writeQuestions are writes of one object and of collections. Rehearsals come first: they show
// chief whether the question is one that could tell the sites apart.
func writeQuestions(kind, plural string) []question {
	var questions []question
	add := func(method, path, contentType, body string) {
		questions = append(questions, question{method: method, path: "/" + plural + path, contentType: contentType, body: body})
	}
	names := []string{"hidden-r"}
	switch {
	case thorough(kind):
		names = append([]string{"never"}, hiddenNames...)
	case kind == "Device", kind == "DeviceMetric":
		names = append(names, "linked")
	}
	for _, dry := range []string{"dryRun=All", ""} {
		for _, name := range names {
			object, path := sweptObject(kind, `"name":"`+name+`"`, labelNone), "/"+name+"?"+dry
			add(http.MethodPut, path, "application/json", object)
			add(http.MethodPatch, path, "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`)
			add(http.MethodDelete, path, "", "")
			if thorough(kind) && (name == "hidden-r" || name == "never") {
				questions = append(questions, thoroughWrites(kind, plural, name, dry)...)
			}
			if thorough(kind) || dry != "" {
				add(http.MethodPatch, path+"&fieldManager=sweep", "application/apply-patch+yaml", object)
			}
			add(http.MethodPost, "?"+dry, "application/json", object)
		}
	}
	add(http.MethodPost, "", "application/json", sweptObject(kind, `"generateName":"made-"`, labelNone))
	add(http.MethodDelete, "?labelSelector=word%3Dxylo", "", "")
	return questions
}

// thoroughWrites are writes of one object with each option that there is.
func thoroughWrites(kind, plural, name, dry string) []question {
	var questions []question
	add := func(method, path, contentType, body string) {
		questions = append(questions, question{method: method, path: "/" + plural + path, contentType: contentType, body: body})
	}
	object, path := sweptObject(kind, `"name":"`+name+`"`, labelNone), "/"+name+"?"+dry
	identified := sweptObject(kind, `"name":"`+name+`","uid":"UID:hidden-r"`, labelNone)
	versioned := sweptObject(kind, `"name":"`+name+`","resourceVersion":"VERSION:hidden-r"`, labelNone)
	for _, sent := range []string{identified, versioned, sweptObject(kind, `"name":"`+name+`"`, labelR), sweptObject(kind, `"name":"`+name+`"`, `"nosuch":1`)} {
		add(http.MethodPut, path+"&fieldManager=m&fieldValidation=Strict&pretty=true", "application/json", sent)
	}
	for mediaType, patch := range map[string]string{
		"application/json-patch+json":            `[{"op":"add","path":"/spec/language","value":"de"}]`,
		"application/merge-patch+json":           `{"metadata":{"resourceVersion":"VERSION:hidden-r"},"spec":{"language":"de"}}`,
		"application/strategic-merge-patch+json": `{"spec":{"language":"de"}}`,
		"application/apply-patch+yaml":           versioned,
		"application/apply-patch+cbor":           object,
	} {
		add(http.MethodPatch, path+"&fieldManager=m&fieldValidation=Strict&pretty=true", mediaType, patch)
	}
	add(http.MethodPatch, path, "application/json-patch+json", `[{"op":"test","path":"/metadata/name","value":"nobody"}]`)
	for _, options := range []string{
		"gracePeriodSeconds=0", "orphanDependents=true", "propagationPolicy=Foreground", "pretty=true", "ignoreStoreReadErrorWithClusterBreakingPotential=true",
	} {
		add(http.MethodDelete, path+"&"+options, "", "")
	}
	rehearsal := "" // options in the body take the place of those in the query
	if dry != "" {
		rehearsal = `"dryRun":["All"],`
	}
	for _, met := range []string{`"uid":"UID:hidden-r"`, `"resourceVersion":"VERSION:hidden-r"`} {
		add(http.MethodDelete, path, "application/json", `{"apiVersion":"v1","kind":"DeleteOptions",`+rehearsal+`"preconditions":{`+met+`}}`)
	}
	add(http.MethodPatch, path+"&fieldManager=sweep&force=true", "application/apply-patch+yaml", identified)
	add(http.MethodPost, "?"+dry+"&fieldManager=m&fieldValidation=Strict&pretty=true", "application/json", object)
	return questions
}

// facadeQuestions reach the other APIs of the sites through kube-apiserver. Those that create come
// last: of what is deleted the FHIR API says that it was there.
func facadeQuestions() []question {
	var questions []question
	ask := func(method, path, contentType, body string) {
		questions = append(questions, question{method, "/facades/SITE" + path, "application/fhir+json", contentType, body})
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, name := range append([]string{"never", "seen-a"}, hiddenNames...) {
			ask(method, "/fhir/Patient/"+name, "", "")
		}
		for _, path := range []string{
			"/Patient/hidden-r/_history", "/Patient/raised/_history/1", "/Patient/hidden-r/Device", "/Device/linked", "", "?_type=Patient,Device", "/_history", "/Patient", "/Patient?_count=1", "/Patient?_summary=count", "/Patient?_tag=secret&_total=accurate", "/Patient?_sort=-_id&_count=2", "/Patient/_history",
			"/Patient?_has:Device:patient:_id=linked", "/Device?patient=Patient/hidden-r", "/Device?_include=Device:patient", "/Patient?_revinclude=Device:patient", "/metadata",
		} {
			ask(method, "/fhir"+path, "", "")
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		for _, path := range []string{"/fhir?path=Patient/hidden-r", "/fhir/Patient/hidden-r?path=Device", "/ahds?path=x", "/ahds/v1?path=x"} {
			ask(method, path, "", "")
		}
	}
	const form = "application/x-www-form-urlencoded"
	ask(http.MethodPost, "/fhir/Patient/_search", form, "_tag=secret&_total=accurate")
	ask(http.MethodPost, "/fhir", "application/fhir+json", `{"resourceType":"Bundle","type":"batch","entry":[{"request":{"method":"GET","url":"Patient/hidden-r"}},{"request":{"method":"GET","url":"Patient?_tag=secret"}}]}`)
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
		ask(method, "/fhir", "", "")
		ask(method, "/ahds", "", "")
		ask(method, "/ahds/v1/availability-slot/hidden-r", "application/json", "{}")
	}
	for _, name := range []string{"never", "hidden-r"} {
		ask(http.MethodPost, "/fhir/Patient/"+name+"/$validate?mode=update", "application/fhir+json", `{"resourceType":"Patient","id":"`+name+`"}`)
		ask(http.MethodPatch, "/fhir/Patient/"+name, "application/json-patch+json", `[{"op":"add","path":"/language","value":"de"}]`)
		ask(http.MethodDelete, "/fhir/Patient/"+name, "", "")
		ask(http.MethodDelete, "/fhir/Patient?_id="+name, "", "")
		ask(http.MethodPut, "/fhir/Patient?_id="+name, "application/fhir+json", `{"resourceType":"Patient","id":"`+name+`"}`)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		for _, path := range []string{"", "/v1/availability-slot", "/v1/eventgroup", "/v1/availability-slot/hidden-r"} {
			ask(method, "/ahds"+path, "application/json", "{}")
		}
	}
	for _, path := range []string{"/facades/SITE", "/facades/SITE?pretty=true", "/facades/hidden-r"} {
		questions = append(questions, question{method: http.MethodGet, path: path}, question{method: http.MethodGet, path: path, accept: tableJSON})
	}
	for _, name := range []string{"hidden-r", "tagged"} {
		ask(http.MethodPut, "/fhir/Patient/"+name, "application/fhir+json", `{"resourceType":"Patient","id":"`+name+`"}`)
	}
	return questions
}
