package fhir_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store"
)

const fhirBody = "application/fhir+json"

// patches are JSON Patches: one that applies to every record, one that does to none, one that is none.
var patches = []string{
	`[{"op":"add","path":"/language","value":"de"}]`,
	`[{"op":"test","path":"/id","value":"nobody"},{"op":"add","path":"/language","value":"de"}]`,
	`[{"op":"odd"}]`,
}

// writesOf are writes of a record of a type that name it by its id, or by criteria that it alone
// meets.
func writesOf(kind, id string, thorough bool) []question {
	var questions []question
	ask := func(method, path, body string, pairs ...string) {
		questions = append(questions, question{method: method, path: path, body: body, header: header(pairs...)})
	}
	sent := sweepRecord{kind, id, hiddenWord, "seen-a", ""}.body()
	unnamed := strings.Replace(sent, `"id":"`+id+`",`, "", 1)
	record, chosen := "/"+kind+"/"+id, "/"+kind+"?identifier="+url.QueryEscape("urn:only|"+id)
	conditions := [][]string{{}, {"If-Match", `W/"1"`}, {"If-Match", `W/"2"`}, {"If-Match", `W/"1", W/"2", W/"3"`}, {"If-Match", "*"}, {"If-None-Match", "*"}}
	dialects := []string{fhirBody, "application/json"}
	if !thorough {
		conditions, dialects = [][]string{{}, {"If-Match", `W/"1"`}, {"If-None-Match", "*"}}, dialects[:1]
	}
	for _, condition := range conditions {
		for _, fixed := range []string{"", "1"} {
			for _, kindOfBody := range dialects {
				more := append([]string{"Content-Type", kindOfBody, "Accept", kindOfBody}, condition...)
				if fixed != "" {
					more = append(more, headerFixedIDs, fixed)
				}
				ask("PUT", record, sent, more...)
				ask("PUT", chosen, unnamed, more...)
				ask("PUT", chosen, sent, more...)
			}
		}
		for _, patch := range patches {
			ask("PATCH", record, patch, append([]string{"Content-Type", "application/json-patch+json"}, condition...)...)
			ask("PATCH", chosen, patch, append([]string{"Content-Type", "application/json-patch+json"}, condition...)...)
		}
		ask("DELETE", record, "", condition...)
		ask("DELETE", record, "", append([]string{"Accept", "application/json"}, condition...)...)
		ask("DELETE", chosen, "", condition...)
	}
	ask("POST", "/"+kind, unnamed, "If-None-Exist", "identifier=urn:only|"+id)
	ask("POST", "/"+kind, sent, "If-None-Exist", "identifier=urn:only|"+id+"&_security=R")
	for _, purge := range []string{"/$purge", "/%24purge", "/$purge?compartment=false", "/$purge?compartment=true"} {
		ask("POST", record+purge, "")
	}
	for _, mode := range []string{"", "?mode=create", "?mode=update", "?mode=delete"} {
		for _, fixed := range []string{"", "1"} {
			ask("POST", "/"+kind+"/$validate"+mode, sent, headerFixedIDs, fixed)
			ask("POST", record+"/$validate"+mode, sent, headerFixedIDs, fixed)
			if thorough {
				ask("POST", "/"+kind+"/%24validate"+mode, sent, headerFixedIDs, fixed)
				ask("POST", record+"/%24validate"+mode, sent, headerFixedIDs, fixed)
			}
		}
	}
	return append(questions, bundlesAbout(kind, id, sent, unnamed, thorough)...)
}

// bundlesAbout are batches and transactions with each way to write or read a record.
func bundlesAbout(kind, id, sent, unnamed string, thorough bool) []question {
	var questions []question
	only := "identifier=urn:only|" + id
	pointing := fmt.Sprintf(`{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"%s?%s"}}]}`, kind, only)
	referring := fmt.Sprintf(`{"resourceType":"Group","type":"animal","actual":true,"member":[{"entity":{"reference":"%s/%s"}}]}`, kind, id)
	for _, entry := range []string{
		asks("GET", kind+"/"+id, ""), asks("HEAD", kind+"/"+id, ""), asks("GET", kind+"/"+id, "", `"ifNoneMatch":"W/\"1\""`), asks("GET", kind+"/"+id+"/_history/1", ""), asks("GET", kind+"/"+id+"/_history", ""),
		asks("GET", kind+"?_security=R,V", ""), asks("GET", kind+"?_tag=secret&_total=accurate", ""), asks("GET", kind+"/_history?_count=2", ""),
		asks("PUT", kind+"/"+id, sent), asks("PUT", kind+"/"+id, sent, `"ifMatch":"W/\"1\""`), asks("PUT", kind+"?"+only, unnamed), asks("PATCH", kind+"/"+id, binary(patches[0])), asks("PATCH", kind+"?"+only, binary(patches[0])),
		asks("DELETE", kind+"/"+id, ""), asks("DELETE", kind+"/"+id, "", `"ifMatch":"W/\"1\""`), asks("DELETE", kind+"?"+only, ""),
		asks("POST", kind, unnamed, `"ifNoneExist":"`+only+`"`), asks("POST", "Group", pointing), asks("POST", "Group", referring),
	} {
		for _, form := range []string{"batch", "transaction"} {
			q := question{method: "POST", path: "/", body: bundleOf(form, entry)}
			questions = append(questions, q)
			if thorough {
				q.header = header(headerFixedIDs, "1", headerLoose, "1")
				questions = append(questions, q)
			}
		}
	}
	return questions
}

// referenceWrites are writes of records that refer to hidden ones, and of what hidden ones refer to.
func referenceWrites() []question {
	var questions []question
	add := func(method, path, body string, pairs ...string) {
		questions = append(questions, question{method: method, path: path, body: body, header: header(pairs...)})
	}
	for _, id := range append([]string{"never"}, hiddenIDs...) {
		add("POST", "/Organization", `{"resourceType":"Organization","name":"n","partOf":{"reference":"Organization/`+id+`"}}`)
		add("POST", "/Organization", `{"resourceType":"Organization","name":"n","partOf":{"reference":"Organization/`+id+`"}}`, headerLoose, "1")
		add("POST", "/Organization/$validate", `{"resourceType":"Organization","name":"n","partOf":{"reference":"Organization/`+id+`"}}`)
		add("POST", "/Device", `{"resourceType":"Device","patient":{"reference":"Patient/`+id+`"}}`, headerLoose, "1")
	}
	claimed := header("If-None-Exist", "identifier=urn:only|claimed", headerLoose, "1")
	questions = append(questions, question{method: "POST", path: "/Patient", body: claimer(""), header: claimed})
	for _, kind := range []string{"Organization", "Endpoint", "HealthcareService"} {
		add("DELETE", "/"+kind+"/seen-a", "")
	}
	add("DELETE", "/Endpoint/referred", "") // the last one: only one site deletes it
	return questions
}

// compareWrite asks both sites to write, compares what they show after a change that both made, and
// takes away what was created.
func (b *twins) compareWrite(ctx context.Context, q question, kind string) {
	b.with.created, b.without.created = nil, nil
	count := func() (n int) {
		for _, times := range b.admitted {
			n += times
		}
		return n
	}
	met := count()
	answer := b.compare(q)
	mayChange := q.method == "DELETE" || strings.HasPrefix(q.body, `{"resourceType":"Bundle"`)
	if count() == met && (len(b.with.created) > 0 || mayChange && strings.HasPrefix(answer, "2")) {
		b.compareRecords(kind)
	}
	b.with.undo(ctx)
	b.without.undo(ctx)
}

// compareRecords compares all records of a type and their history. Specs that write end with it, as
// what a refused request changed shows until then.
func (b *twins) compareRecords(kind string) {
	b.compare(question{method: "GET", path: "/" + kind + "?_sort=_id&_count=1000"})
	b.compare(question{method: "GET", path: "/" + kind + "/_history?_count=1000"})
}

// undo takes away the records that were created: those under ids that the server chose and, where
// there are no hidden records, those under their ids.
func (t *twin) undo(ctx context.Context) {
	for _, key := range t.created {
		if assignedID.MatchString(key.ID) || !t.hides && slices.Contains(append([]string{"linked"}, hiddenIDs...), key.ID) {
			_, err := t.raw.Write(ctx, []store.Op{{Kind: store.Purge, Key: key, Method: store.MethodDelete}})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// stored describes the newest versions of all hidden records.
func (b *twins) stored(ctx context.Context) map[store.Key]string {
	found := map[store.Key]string{}
	for _, kind := range b.kinds {
		for _, id := range append([]string{"linked"}, hiddenIDs...) {
			key := store.Key{Type: kind, ID: id}
			record, err := b.with.raw.Get(ctx, key)
			found[key] = fmt.Sprint(record.UID, record.Version, record.Revision, string(record.Body.JSON), err)
		}
	}
	return found
}
