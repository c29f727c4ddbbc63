package fhir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
	"github.com/paddock-health/paddock/hack/dev/examples"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// bin has HL7's package.
const bin = "../../bin"

// claim is a site and a type that its CapabilityStatement speaks of.
type claim struct {
	site
	kind string
	// updateCreate is what it says of that.
	updateCreate bool
}

// body is a valid resource of the type with an identifier, and more members.
func (c claim) body(identifier, more string) string {
	return `{"resourceType":"` + c.kind + `","identifier":[{"system":"urn:chip","value":"` + identifier + `"}]` + least[c.kind] + more + `}`
}

// create makes a record and returns its id.
func (c claim) create(identifier string) string {
	GinkgoHelper()
	a := c.send("POST", "/"+c.kind, c.body(identifier, ""))
	Expect(a.status).To(Equal(http.StatusCreated), a.body)
	return a.json()["id"].(string)
}

// send speaks FHIR both ways.
func (c claim) send(method, path, body string, options ...option) answer {
	GinkgoHelper()
	return c.do(method, path, body, append([]option{sendFHIR, acceptFHIR}, options...)...)
}

func (c claim) succeed(method, path, body string, options ...option) answer {
	GinkgoHelper()
	a := c.send(method, path, body, options...)
	Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusCreated), method+" "+path+": "+a.body)
	return a
}

// interactionProofs exercise what a type's interaction codes say.
var interactionProofs = map[string]func(c claim){
	"read": func(c claim) {
		id := c.create("read")
		Expect(c.succeed("GET", "/"+c.kind+"/"+id, "").json()).To(HaveKeyWithValue("id", id))
	},
	"vread": func(c claim) {
		id := c.create("vread")
		c.succeed("PUT", "/"+c.kind+"/"+id, c.body("vread", `,"language":"en","id":"`+id+`"`))
		Expect(c.succeed("GET", "/"+c.kind+"/"+id+"/_history/2", "").json().at("meta", "versionId")).To(Equal("2"))
	},
	"update": func(c claim) {
		id := c.create("update")
		updated := c.succeed("PUT", "/"+c.kind+"/"+id, c.body("update", `,"language":"en","id":"`+id+`"`))
		Expect(updated.json()).To(HaveKeyWithValue("language", "en"))
	},
	"patch": func(c claim) {
		id := c.create("patch")
		patched := c.succeed("PATCH", "/"+c.kind+"/"+id, `[{"op":"add","path":"/language","value":"en"}]`, sendPatch)
		Expect(patched.json()).To(HaveKeyWithValue("language", "en"))
	},
	"delete": func(c claim) {
		id := c.create("delete")
		c.succeed("DELETE", "/"+c.kind+"/"+id, "")
		Expect(c.send("GET", "/"+c.kind+"/"+id, "").status).To(Equal(http.StatusGone))
	},
	"history-instance": func(c claim) {
		id := c.create("history")
		Expect(c.succeed("GET", "/"+c.kind+"/"+id+"/_history", "").json()["total"]).To(BeEquivalentTo(1))
	},
	"history-type": func(c claim) {
		c.create("history-type")
		expectValid(c.succeed("GET", "/"+c.kind+"/_history?_count=1", ""))
	},
	"create":      func(c claim) { c.create("create") },
	"search-type": func(c claim) { expectValid(c.succeed("GET", "/"+c.kind, "")) },
}

// memberProofs exercise what the other members of a type's entry say.
var memberProofs = map[string]func(c claim, value any){
	"type":    func(c claim, value any) { Expect(value).To(Equal(c.kind)) },
	"profile": func(c claim, value any) { Expect(value).To(HaveSuffix("/StructureDefinition/" + c.kind)) },
	"interaction": func(c claim, value any) {
		for _, each := range value.([]any) {
			code := each.(map[string]any)["code"].(string)
			Expect(interactionProofs).To(HaveKey(code))
			interactionProofs[code](c)
		}
		Expect(value).To(HaveLen(len(interactionProofs)))
	},
	"versioning": func(c claim, value any) {
		Expect(value).To(Equal("versioned-update"))
		id := c.create("versioning")
		body := c.body("versioning", `,"language":"en","id":"`+id+`"`)
		Expect(c.send("PUT", "/"+c.kind+"/"+id, body, with("If-Match", `W/"2"`)).status).To(Equal(http.StatusPreconditionFailed))
		Expect(c.succeed("PUT", "/"+c.kind+"/"+id, body, with("If-Match", `W/"1"`)).header.Get("ETag")).To(Equal(`W/"2"`))
	},
	"readHistory": func(c claim, value any) {
		Expect(value).To(BeTrue())
		id := c.create("past")
		c.succeed("DELETE", "/"+c.kind+"/"+id, "")
		c.succeed("GET", "/"+c.kind+"/"+id+"/_history/1", "")
	},
	"updateCreate": func(c claim, value any) {
		Expect(value).To(Equal(c.updateCreate))
		status := http.StatusMethodNotAllowed
		if value == true {
			status = http.StatusCreated
		}
		Expect(c.send("PUT", "/"+c.kind+"/chosen", c.body("chosen", `,"id":"chosen"`)).status).To(Equal(status))
	},
	"conditionalCreate": func(c claim, value any) {
		Expect(value).To(BeTrue())
		c.create("once")
		again := c.send("POST", "/"+c.kind, c.body("once", ""), with("If-None-Exist", "identifier=urn:chip|once"))
		Expect(again.status).To(Equal(http.StatusOK))
	},
	"conditionalRead": func(c claim, value any) {
		Expect(value).To(Equal("full-support"))
		read := c.succeed("GET", "/"+c.kind+"/"+c.create("conditional"), "")
		path := "/" + c.kind + "/" + read.json()["id"].(string)
		Expect(c.send("GET", path, "", with("If-None-Match", read.header.Get("ETag"))).status).To(Equal(http.StatusNotModified))
		Expect(c.send("GET", path, "", with("If-Modified-Since", read.header.Get("Last-Modified"))).status).To(Equal(http.StatusNotModified))
	},
	"conditionalUpdate": func(c claim, value any) {
		Expect(value).To(BeTrue())
		id := c.create("by-criteria")
		updated := c.succeed("PUT", "/"+c.kind+"?identifier=urn:chip|by-criteria", c.body("by-criteria", `,"language":"en"`))
		Expect(updated.json()).To(HaveKeyWithValue("id", id))
	},
	"conditionalDelete": func(c claim, value any) {
		Expect(value).To(Equal("single"))
		id := c.create("single")
		c.succeed("DELETE", "/"+c.kind+"?identifier=urn:chip|single", "")
		Expect(c.send("GET", "/"+c.kind+"/"+id, "").status).To(Equal(http.StatusGone))
		c.create("several")
		c.create("several")
		Expect(c.send("DELETE", "/"+c.kind+"?identifier=urn:chip|several", "").status).To(Equal(http.StatusPreconditionFailed))
	},
	// That each parameter finds what it should, and each include includes, is shown
	// with the search parameters.
	"searchParam": func(c claim, value any) {
		c.create("search")
		for _, each := range value.([]any) {
			proveParameter(c.site, "/"+c.kind, c.kind, each.(map[string]any))
		}
		Expect(value).To(HaveLen(len(search.ParametersOf(c.kind))))
	},
	"searchInclude":    func(c claim, value any) { c.include("_include", value) },
	"searchRevInclude": func(c claim, value any) { c.include("_revinclude", value) },
	"operation": func(c claim, value any) {
		claimed := map[string]any{}
		for _, each := range value.([]any) {
			claimed[each.(map[string]any)["name"].(string)] = each.(map[string]any)["definition"]
		}
		want := map[string]any{"validate": "http://hl7.org/fhir/OperationDefinition/Resource-validate"}
		everything := c.send("GET", "/"+c.kind+"/"+c.create("everything")+"/$everything", "")
		if c.kind == "Patient" {
			want["everything"] = "http://hl7.org/fhir/OperationDefinition/Patient-everything"
			Expect(everything.json()).To(HaveKeyWithValue("type", "searchset"))
			want["export"] = "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/patient-export"
			c.startExport("/Patient/$export")
		} else {
			Expect(everything.code()).To(Equal("unknown_operation"))
		}
		if c.kind == "Group" {
			want["export"] = "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/group-export"
			c.startExport("/Group/" + c.create("export") + "/$export")
		}
		Expect(claimed).To(HaveKey("purge"))
		delete(claimed, "purge") // its definition depends on the type
		Expect(claimed).To(Equal(want))
		Expect(c.succeed("POST", "/"+c.kind+"/"+c.create("purged")+"/$purge", "").body).To(ContainSubstring(`"purged"`))
		Expect(c.succeed("POST", "/"+c.kind+"/$validate", c.body("valid", "")).body).NotTo(ContainSubstring(`"error"`))
		Expect(c.succeed("POST", "/"+c.kind+"/$validate", `{}`).body).To(ContainSubstring(`"error"`))
	},
}

// include asks for all that can be included.
func (c claim) include(parameter string, value any) {
	Expect(value).NotTo(BeEmpty())
	for _, each := range value.([]any) {
		c.succeed("GET", "/"+c.kind+"?"+parameter+"="+each.(string), "")
	}
}

// definedParameter is HL7's definition of a search parameter.
type definedParameter struct {
	Code, Type, URL string
	Base            []string
}

// definedParameters are all of HL7's, by URL.
var definedParameters = sync.OnceValue(func() map[string]definedParameter {
	path, err := examples.Fetch(context.Background(), bin)
	Expect(err).NotTo(HaveOccurred())
	all := map[string]definedParameter{}
	Expect(examples.Walk(path, func(name string, text []byte) error {
		if !strings.HasPrefix(name, "SearchParameter-") {
			return nil
		}
		var p definedParameter
		err := json.Unmarshal(text, &p)
		all[p.URL] = p
		return err
	})).To(Succeed())
	return all
})

// expectedParameters are those that types should have, by type and name.
var expectedParameters = sync.OnceValue(func() map[string]map[string]searchtruth.Parameter {
	parameters, err := searchtruth.Parameters(context.Background(), bin)
	Expect(err).NotTo(HaveOccurred())
	return parameters
})

// proveParameter searches by a parameter for what nobody has, and holds what is said
// of it against its definition.
func proveParameter(s site, path, base string, said document) {
	GinkgoHelper()
	name := said["name"].(string)
	value := nobody(search.Parameter{Name: name, Type: said["type"].(string)}, "")
	if isBoolean(base, name) {
		value = "true"
	}
	Expect(s.do("GET", path+"?"+url.Values{name: {value}}.Encode(), "", acceptFHIR).status).To(Equal(http.StatusOK), name)
	definition, _ := said["definition"].(string)
	if defined, ofR4 := definedParameters()[definition]; ofR4 {
		Expect([]any{defined.Code, defined.Type}).To(Equal([]any{said["name"], said["type"]}))
		Expect(defined.Base).To(ContainElement(BeElementOf(base, "Resource")))
	} else {
		id := strings.TrimPrefix(definition, "http://hl7.org/fhir/SearchParameter/")
		Expect(expectedParameters()[base]).To(HaveKeyWithValue(name, HaveField("ID", id)), "only additions and parameters of the contract are not R4's")
	}
}

// isBoolean reports whether the values of a parameter are booleans, and no other codes.
func isBoolean(base, name string) bool {
	return slices.ContainsFunc(r4.SearchParameters(base), func(p *r4.SearchParameter) bool {
		return p.Name == name && slices.Equal(p.Types(), []string{"boolean"})
	})
}

// proveAuditEvents holds what is said of AuditEvents against HL7's definitions. What they do is
// proven with the audit log.
func proveAuditEvents(s site, said document) {
	GinkgoHelper()
	Expect(said["type"]).To(Equal("AuditEvent"))
	Expect(said["interaction"]).To(HaveLen(1))
	Expect(s.do("GET", "/AuditEvent", "").status).To(Equal(http.StatusServiceUnavailable), "the suite's sites have no audit log")
	for _, each := range said["searchParam"].([]any) {
		p := each.(map[string]any)
		if definition, ok := p["definition"].(string); ok {
			defined := definedParameters()[definition]
			Expect([]any{defined.Code, defined.Type}).To(Equal([]any{p["name"], p["type"]}))
			Expect(defined.Base).To(ContainElement("AuditEvent"))
		} else {
			Expect(p["name"]).To(Equal("agent"))
		}
	}
}

// systemProofs exercise what the interaction codes of the whole site say.
var systemProofs = map[string]func(s site){
	"batch": func(s site) {
		Expect(s.do("POST", "", bundleOf("batch", asks("POST", "Patient", luna), asks("POST", "Patient", luna))).status).To(Equal(http.StatusOK))
	},
	"transaction": func(s site) {
		Expect(s.do("POST", "", bundleOf("transaction", asks("POST", "Patient", luna), asks("POST", "Patient", luna))).status).To(Equal(http.StatusOK))
	},
	"history-system": func(s site) { Expect(s.do("GET", "/_history", "").status).To(Equal(http.StatusOK)) },
	"search-system":  func(s site) { Expect(s.do("GET", "?_type=Patient,Person", "").status).To(Equal(http.StatusOK)) },
}

var _ = Describe("The CapabilityStatement", func() {
	for name, change := range map[string]struct {
		apply        func(*fhir.Endpoint)
		updateCreate bool
		cors         bool
		interactions []string
	}{
		"of a site as it comes":               {func(*fhir.Endpoint) {}, true, false, []string{"batch", "history-system", "search-system"}},
		"of a site that chooses ids":          {func(s *fhir.Endpoint) { s.UpdateCreate = false }, false, false, []string{"batch", "history-system", "search-system"}},
		"of a site that allows other origins": {func(s *fhir.Endpoint) { s.CORS = web.AllowOrigins([]string{"https://app.example"}) }, true, true, []string{"batch", "history-system", "search-system"}},
		"of a site that writes several":       {writingSeveral, true, false, []string{"batch", "history-system", "search-system", "transaction"}},
	} {
		It(name+" claims nothing that is false", func(ctx context.Context) {
			s := newSite(ctx, change.apply)
			a := s.do("GET", "/metadata", "", acceptFHIR)
			Expect(a.status).To(Equal(http.StatusOK))
			expectValid(a)
			said := a.json()
			Expect(said["status"]).To(Equal("active"))
			Expect(said["kind"]).To(Equal("instance"))
			Expect(said["fhirVersion"]).To(Equal("4.0.1"))
			Expect(said.at("software", "version")).To(Equal("v0-test"))
			Expect(said.at("implementation", "url")).To(Equal(s.base))
			rest := document(said.at("rest", 0).(map[string]any))
			Expect(said["rest"]).To(HaveLen(1))
			Expect(rest["mode"]).To(Equal("server"))

			By("answering in each format, and in patches in each patch format")
			record := "/Patient/" + s.do("POST", "/patient", luna).json()["id"].(string)
			for _, format := range said["format"].([]any) {
				named := s.do("GET", record+"?_format="+strings.ReplaceAll(format.(string), "+", "%2B"), "")
				Expect(named.status).To(Equal(http.StatusOK), format)
				if strings.Contains(format.(string), "/") {
					Expect(named.header.Get("Content-Type")).To(HavePrefix(format.(string)))
					Expect(s.do("GET", record, "", with("Accept", format.(string))).header.Get("Content-Type")).To(HavePrefix(format.(string)))
					Expect(s.do("PUT", record, `{"resourceType":"Patient","id":"`+strings.TrimPrefix(record, "/Patient/")+`"}`, with("Content-Type", format.(string))).status).To(Equal(http.StatusOK))
				}
			}
			for _, format := range said["patchFormat"].([]any) {
				Expect(s.do("PATCH", record, "[]", with("Content-Type", format.(string))).status).To(Equal(http.StatusOK))
			}

			By("telling whether the site allows other origins")
			Expect(rest.at("security", "cors")).To(Equal(change.cors))

			By("doing what it says of the whole site, and no more of that kind")
			var codes []string
			for _, each := range rest["interaction"].([]any) {
				codes = append(codes, each.(map[string]any)["code"].(string))
				systemProofs[codes[len(codes)-1]](s)
			}
			Expect(codes).To(Equal(change.interactions))
			if len(codes) == 3 {
				refused := s.do("POST", "", bundleOf("transaction", asks("POST", "Patient", luna), asks("POST", "Patient", luna)))
				Expect(refused.status).To(Equal(http.StatusNotImplemented))
			}

			By("not searching by what it says is not taken, and in the ways that are")
			for _, name := range []string{"_text", "_content", "_query", "_filter", "_list"} {
				Expect(rest["documentation"]).To(ContainSubstring(name))
				Expect(s.do("GET", "/patient?"+name+"=x", "").status).To(Equal(http.StatusBadRequest))
			}
			for _, query := range []string{"organization.name=x", "_has:Group:member:code=x", "_include:iterate=*", "_revinclude:iterate=*"} {
				Expect(s.do("GET", "/patient?"+query, "").status).To(Equal(http.StatusOK))
			}

			By("finding by a patient what refers to that very record")
			Expect(rest["documentation"]).To(ContainSubstring("does not follow Patient.link"))
			const linked = `{"resourceType":"Patient","link":[{"other":{"reference":"Patient/%s"},"type":"seealso"}]}`
			one := s.do("POST", "/Patient", luna).json()["id"].(string)
			other := s.do("POST", "/Patient", fmt.Sprintf(linked, one)).json()["id"].(string)
			s.do("POST", "/RelatedPerson", relatedTo("Patient/"+other, ""))
			for query, total := range map[string]int{"patient=" + one: 0, "patient=" + other: 1, "patient.link=" + one: 1} {
				Expect(s.do("GET", "/RelatedPerson?"+query, "").json()["total"]).To(BeEquivalentTo(total), query)
			}
			for id, total := range map[string]int{one: 0, other: 1} {
				Expect(s.do("GET", "/Patient/"+id+"/RelatedPerson", "").json()["total"]).To(BeEquivalentTo(total), id)
			}

			By("serving the compartments that it says, and no others")
			proveCompartments(s, rest["compartment"].([]any))

			By("searching all types by the parameters that it says they share")
			Expect(rest["searchParam"]).To(HaveLen(6))
			for _, each := range rest["searchParam"].([]any) {
				proveParameter(s, "", "Resource", each.(map[string]any))
			}

			By("exporting the site, as it says")
			Expect(rest["operation"]).To(ConsistOf(HaveKeyWithValue("name", "export")))
			s.startExport("/$export")

			By("doing what it says of each type")
			resources := rest["resource"].([]any)
			Expect(resources).To(HaveLen(len(r4.Types) + 1))
			proveAuditEvents(s, resources[len(r4.Types)].(map[string]any))
			for i, kind := range r4.Types {
				optional := []string{"searchInclude", "searchRevInclude"} // not of types without references
				for member := range memberProofs {
					Expect(member).To(Or(BeElementOf(optional), BeKeyOf(resources[i].(map[string]any))))
				}
				for member, value := range resources[i].(map[string]any) {
					Expect(memberProofs).To(HaveKey(member), fmt.Sprintf("%s.%s is claimed and not proven", kind.Name, member))
					memberProofs[member](claim{s, kind.Name, change.updateCreate}, value)
				}
			}
		})
	}

	It("needs no token, and is also what OPTIONS at the base answers", func(ctx context.Context) {
		s := newSite(ctx)
		a := s.do("GET", "/metadata", "")
		for _, again := range []answer{
			s.do("GET", "/metadata?_summary=true", ""), s.do("GET", "/metadata?_elements=fhirVersion,rest", ""), s.do("OPTIONS", "", ""), s.do("OPTIONS", "/", ""), s.do("GET", "/metadata?mode=full", ""), s.do("GET", "/metadata?mode=normative&_format=json", ""),
		} {
			Expect(again.status).To(Equal(http.StatusOK))
			Expect(again.body).To(Equal(a.body))
		}
		Expect(s.do("GET", "/metadata", "", with("X-Caller", "no-get")).status).To(Equal(http.StatusOK))
		Expect(s.do("HEAD", "/metadata", "").body).To(BeEmpty())
		Expect(s.do("GET", "/metadata?_pretty=true", "").body).To(HavePrefix("{\n"))
		tag := a.header.Get("ETag")
		Expect(tag).NotTo(BeEmpty())
		Expect(s.do("GET", "/metadata", "", with("If-None-Match", tag)).status).To(Equal(http.StatusNotModified))
		Expect(s.do("GET", "/metadata", "", with("If-None-Match", `W/"1"`)).status).To(Equal(http.StatusOK))

		By("of a site whose storage is away too")
		away := newSite(ctx, func(site *fhir.Endpoint) { site.Store = nil })
		Expect(away.do("GET", "/metadata", "").status).To(Equal(http.StatusOK))
		Expect(away.do("GET", "/patient", "").status).To(Equal(http.StatusServiceUnavailable))
		unknown := s.do("GET", strings.Replace(s.base, "clinic-", "nothing-", 1)+"/metadata", "")
		Expect(unknown.code()).To(Equal("unknown_site"))
	})
})
