package fhir_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// least is a body of each type that needs more than a resourceType.
var least = map[string]string{
	"DeviceMetric":  `,"type":{"text":"t"},"category":"unspecified"`,
	"Endpoint":      `,"connectionType":{"code":"x"},"payloadType":[{"text":"any"}],"status":"active","address":"https://e.example"`,
	"Group":         `,"type":"animal","actual":true`,
	"Organization":  `,"name":"O"`,
	"RelatedPerson": `,"patient":{"reference":"Patient/a"}`,
}

var _ = Describe("The contract's paths", func() {
	types := contractTable("Resource", "Path segment")
	operations := contractTable("Operation", "Method", "Path", "Request", "Success response")

	It("are the tables of the contract", func() {
		Expect(types).To(HaveLen(14))
		Expect(operations).To(HaveLen(6))
		for i, t := range r4.Types {
			Expect(types[i]).To(Equal([]string{t.Name, t.Segment}))
		}
	})

	// Every operation of every type, in the order create, search, read, update,
	// history, delete, by the contract's spelling and by FHIR's.
	for _, row := range types {
		name, segment := row[0], row[1]
		for _, byFHIR := range []bool{false, true} {
			spelled := segment
			if byFHIR {
				spelled = name
			}
			It("serve six operations at "+spelled, func(ctx context.Context) {
				s := newSite(ctx)
				paths := map[string]func(id string) (string, string){}
				for _, operation := range operations {
					method, path := operation[1], strings.Trim(operation[2], "`")
					path = strings.TrimPrefix(path, "/site/{siteId}/fhir")
					if byFHIR {
						path = strings.ReplaceAll(path, "/history", "/_history")
					}
					path = strings.ReplaceAll(path, "<segment>", spelled)
					paths[operation[0]] = func(id string) (string, string) { return method, strings.ReplaceAll(path, "{id}", id) }
				}
				send := func(operation, id, body string) answer {
					GinkgoHelper()
					method, path := paths[operation](id)
					if byFHIR {
						return s.do(method, path, body, sendFHIR, acceptFHIR)
					}
					return s.do(method, path, body)
				}
				body := `{"resourceType":"` + name + `"` + least[name]

				created := send("Create", "", body+"}")
				Expect(created.status).To(Equal(http.StatusCreated), created.body)
				id := created.json()["id"].(string)
				Expect(created.json()).To(HaveKeyWithValue("resourceType", name))
				spelling := strings.TrimSuffix(strings.TrimPrefix(created.header.Get("Location"), s.base+"/"), "/"+id+"/_history/1")
				_, path := paths["Create"]("")
				Expect("/" + spelling).To(Equal(path))

				found := send("Search", "", "")
				Expect(found.status).To(Equal(http.StatusOK))
				Expect(found.json()).To(HaveKeyWithValue("type", "searchset"))
				Expect(found.json().ids()).To(Equal([]string{id}))
				_, readPath := paths["Read"](id)
				Expect(found.json().at("entry", 0, "fullUrl")).To(Equal(s.base + readPath))

				Expect(send("Read", id, "").body).To(Equal(created.body))

				updated := send("Update", id, body+`,"id":"`+id+`","language":"en"}`)
				Expect(updated.status).To(Equal(http.StatusOK), updated.body)
				Expect(updated.json()).To(HaveKeyWithValue("language", "en"))

				history := send("History", id, "")
				Expect(history.json()).To(HaveKeyWithValue("type", "history"))
				Expect(history.json()).To(HaveKeyWithValue("total", BeEquivalentTo(2)))
				location := history.json().at("entry", 1, "response", "location").(string)
				Expect(location).To(HaveSuffix("/_history/1"))
				Expect(s.do("GET", location, "").body).To(Equal(created.body))

				Expect(send("Delete", id, "").status).To(Equal(http.StatusOK))
				Expect(send("Read", id, "").status).To(Equal(http.StatusGone))
			})

			It("serve FHIR's other interactions at "+spelled, func(ctx context.Context) {
				s := newSite(ctx)
				record, criteria := "/"+spelled+"/a", "/"+spelled+"?identifier=urn:chip|1"
				body := `{"resourceType":"` + name + `","id":"a","identifier":[{"system":"urn:chip","value":"1"}]` + least[name]
				Expect(s.do("PUT", criteria, body+"}", sendFHIR).header.Get("Location")).To(Equal(s.base + record + "/_history/1"))
				Expect(s.do("PUT", criteria, body+`,"language":"en"}`, sendFHIR).header.Get("ETag")).To(Equal(`W/"2"`))
				patched := s.do("PATCH", record, `[{"op":"replace","path":"/language","value":"de"}]`, sendPatch)
				Expect(patched.json()).To(HaveKeyWithValue("language", "de"))
				Expect(s.do("PATCH", criteria, `[{"op":"remove","path":"/language"}]`, sendPatch).json()).NotTo(HaveKey("language"))
				for _, path := range []string{"/" + spelled + "/$validate", record + "/$validate"} {
					Expect(s.do("POST", path, body+"}").status).To(Equal(http.StatusOK))
				}
				Expect(s.do("HEAD", record+"/_history/4", "").status).To(Equal(http.StatusOK))
				Expect(s.do("DELETE", criteria, "").status).To(Equal(http.StatusOK))
				history := s.do("GET", "/"+spelled+"/_history", "", acceptFHIR)
				expectValid(history)
				Expect(methods(history.json())).To(Equal([]string{"DELETE", "PATCH", "PATCH", "PUT", "PUT"}))
				Expect(history.json().entries()[1].at("response", "location")).To(Equal(s.base + record + "/_history/4"))
				Expect(s.do("GET", "/_history?_count=0", "", acceptFHIR).json()["total"]).To(BeEquivalentTo(5))
				batch := s.do("POST", "", bundleOf("batch", asks("GET", spelled+"/a/_history/1", ""), asks("PUT", spelled+"/b", strings.Replace(body, `"id":"a",`, "", 1)+"}")))
				Expect(statuses(batch.json())).To(Equal([]string{"200 OK", "201 Created"}), batch.body)
				Expect(batch.json().entries()[1].at("response", "location")).To(Equal(s.base + "/" + spelled + "/b/_history/1"))
			})
		}
	}
})

var _ = Describe("Spellings", func() {
	It("name the same records", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/practitioner-role/a", `{"resourceType":"PractitionerRole"}`)
		byContract, byFHIR := s.do("GET", "/practitioner-role/a", ""), s.do("GET", "/PractitionerRole/a", "")
		Expect(byFHIR.body).To(Equal(byContract.body))
		Expect(s.do("GET", "/PractitionerRole", "").json().at("entry", 0, "fullUrl")).To(Equal(s.base + "/PractitionerRole/a"))
		Expect(s.do("GET", "/practitioner-role", "").json().at("entry", 0, "fullUrl")).To(Equal(s.base + "/practitioner-role/a"))
		Expect(s.do("GET", "/PractitionerRole?_count=1", "").json().link("self")).To(Equal(s.base + "/PractitionerRole?_count=1"))
	})

	It("take history and _history on an id, with either spelling of the type", func(ctx context.Context) {
		s := newSite(ctx)
		s.put("/patient/a", luna)
		for _, segment := range segments {
			for _, history := range []string{"history", "_history"} {
				path := "/" + segment + "/a/" + history
				a := s.do("GET", path, "")
				Expect(a.status).To(Equal(http.StatusOK), path)
				Expect(a.json().link("self")).To(Equal(s.base + path))
				Expect(a.json().at("entry", 0, "response", "location")).To(Equal(s.base + "/" + segment + "/a/_history/1"))
			}
		}
	})

	It("read history on a type as an id", func(ctx context.Context) {
		s := newSite(ctx)
		Expect(s.do("GET", "/patient/history", "").code()).To(Equal("resource_not_found"))
		s.put("/patient/history", luna)
		Expect(s.do("GET", "/patient/history", "").json()).To(HaveKeyWithValue("id", "history"))
		Expect(s.do("GET", "/patient/history/history", "").json()).To(HaveKeyWithValue("type", "history"))
	})

	It("take ids that differ in case for one, and keep the first spelling", func(ctx context.Context) {
		s := newSite(ctx)
		created := s.do("PUT", "/patient/Luna-1", `{"resourceType":"Patient","id":"LUNA-1"}`)
		Expect(created.status).To(Equal(http.StatusCreated))
		Expect(created.json()).To(HaveKeyWithValue("id", "Luna-1"))
		Expect(created.header.Get("Location")).To(HaveSuffix("/patient/Luna-1/_history/1"))

		changed := s.do("PUT", "/patient/luna-1", `{"resourceType":"Patient","id":"luna-1","active":true}`)
		Expect(changed.status).To(Equal(http.StatusOK))
		Expect(changed.json()).To(HaveKeyWithValue("id", "Luna-1"))
		Expect(s.do("GET", "/patient/LUNA-1", "").body).To(Equal(changed.body))
		Expect(s.do("GET", "/patient/lUNA-1/_history/1", "").status).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/patient?_id=lunA-1", "").json().ids()).To(Equal([]string{"Luna-1"}))
		Expect(s.do("GET", "/patient", "").json().ids()).To(HaveLen(1))
		Expect(s.do("DELETE", "/patient/LUNA-1", "").status).To(Equal(http.StatusOK))
		Expect(s.do("GET", "/patient/Luna-1", "").status).To(Equal(http.StatusGone))
	})

	It("take every character of an id", func(ctx context.Context) {
		s := newSite(ctx)
		for _, id := range []string{"-", "..-..", "-a.", "A%2Eb", strings.Repeat("x", 64)} {
			Expect(s.put("/patient/"+id, luna).header.Get("ETag")).To(Equal(`W/"1"`), id)
			Expect(s.do("GET", "/patient/"+id, "").status).To(Equal(http.StatusOK), id)
		}
		Expect(s.do("GET", "/patient/a.B", "").status).To(Equal(http.StatusOK))
	})
})

// contractTable reads the table with the given head out of the contract.
func contractTable(head ...string) [][]string {
	text, err := os.ReadFile(filepath.Join("testdata", "contract-paths.md"))
	if err != nil {
		panic(err)
	}
	_, table, found := strings.Cut(string(text), "| "+strings.Join(head, " | ")+" |\n")
	if !found {
		panic("the contract has no table of " + head[0])
	}
	var rows [][]string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}
