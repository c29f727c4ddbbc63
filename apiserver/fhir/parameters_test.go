package fhir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// findable is a value that a search parameter has in a record.
type findable struct{ id, value string }

// findables are the first value of each parameter of each type in HL7's examples, or in sweepBodies,
// as a search writes it.
func findables(all []examples.Example) map[string]findable {
	GinkgoHelper()
	found := map[string]findable{}
	for _, example := range all {
		read, err := r4.Read(example.JSON, r4.Options{Type: example.Type})
		Expect(err).NotTo(HaveOccurred())
		for _, v := range r4.Index(read.Body, example.Type) {
			if v.Parameter() == nil {
				continue
			}
			name := example.Type + "." + v.Parameter().Name
			value := searched(v.Type(), v.JSON(read.Body))
			local := v.Type() == "Reference" && !strings.Contains(value, ":") // one that can be included is better
			if value != "" && (found[name].id == "" || local && strings.Contains(found[name].value, ":")) {
				found[name] = findable{example.ID, value}
			}
		}
		if name := example.Type + "._id"; found[name].id == "" {
			found[name] = findable{example.ID, example.ID}
			found[example.Type+"._lastUpdated"] = findable{example.ID, "gt2020"}
		}
	}
	return found
}

// searched writes a value as a search for it does, empty where that cannot be done.
func searched(fhirType string, raw []byte) string {
	GinkgoHelper()
	var value any
	Expect(json.Unmarshal(raw, &value)).To(Succeed())
	object, _ := value.(map[string]any)
	at := func(path ...any) string {
		if found := document(object).at(path...); found != nil {
			return escaped(fmt.Sprint(found))
		}
		return ""
	}
	token := func(system, code string) string {
		if code == "" {
			return ""
		}
		return system + "|" + code
	}
	switch fhirType {
	case "Identifier":
		return token(at("system"), at("value"))
	case "Coding":
		return token(at("system"), at("code"))
	case "CodeableConcept":
		return token(at("coding", 0, "system"), at("coding", 0, "code"))
	case "ContactPoint":
		return at("value")
	case "HumanName":
		return first(at("family"), at("given", 0), at("text"))
	case "Address":
		return first(at("city"), at("line", 0), at("text"))
	case "Reference":
		if reference := at("reference"); strings.Contains(reference, "/") {
			return reference
		}
		return ""
	case "Period":
		if start := at("start"); start != "" {
			return "ge" + start
		}
		return "le" + at("end")
	case "Location.position":
		return at("latitude") + "|" + at("longitude") + "|10|m"
	case "Group.characteristic":
		code := token(at("code", "coding", 0, "system"), at("code", "coding", 0, "code"))
		held := first(token(at("valueCodeableConcept", "coding", 0, "system"), at("valueCodeableConcept", "coding", 0, "code")), at("valueBoolean"))
		if code == "" || held == "" {
			return ""
		}
		return code + "$" + held
	default:
		return escaped(fmt.Sprint(value))
	}
}

func first(texts ...string) string {
	return texts[max(0, slices.IndexFunc(texts, func(text string) bool { return text != "" }))]
}

func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `$`, `\$`, `|`, `\|`).Replace(text)
}

// nobody is a value of a parameter that no record has, or the other boolean.
func nobody(p search.Parameter, value string) string {
	switch {
	case value == "true":
		return "false"
	case value == "false":
		return "true"
	case p.Name == "_id":
		return "nobody"
	case p.Type == "composite":
		return "urn:x|nobody$urn:x|nobody"
	case p.Type == "special":
		return "0|-170|1|km"
	case p.Type == "reference":
		return "nobody"
	case p.Type == "date":
		return "1066"
	case p.Type == "uri":
		return "urn:nobody"
	case p.Name == "phonetic":
		return "Zyxwvut"
	default:
		return "zyxwvut"
	}
}

// modes are those of the entries of a searchset, by the references to their resources.
func modes(searchset document) map[string]string {
	found := map[string]string{}
	for _, entry := range searchset.entries() {
		reference := fmt.Sprint(entry.at("resource", "resourceType"), "/", entry.at("resource", "id"))
		found[reference] = fmt.Sprint(entry.at("search", "mode"))
	}
	return found
}

var _ = Describe("Every search parameter", Ordered, ContinueOnFailure, func() {
	var (
		s     site
		found map[string]findable
		ids   map[string][]string
	)
	BeforeAll(func(ctx context.Context) {
		path, err := examples.Fetch(ctx, bin)
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, kind := range r4.Types {
			names = append(names, kind.Name)
		}
		all, err := examples.Load(path, names...)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range r4.Types {
			whole := sweepRecord{kind: kind.Name, id: "made", word: hiddenWord, refersTo: "1"}
			all = append(all, examples.Example{Type: kind.Name, ID: whole.id, JSON: []byte(whole.body())},
				examples.Example{Type: kind.Name, ID: "bare", JSON: []byte(`{"resourceType":"` + kind.Name + `","id":"bare"` + least[kind.Name] + `}`)})
		}
		found, ids = findables(all), map[string][]string{}
		s = newSite(ctx)
		for _, example := range all {
			a := s.do("PUT", "/"+example.Type+"/"+example.ID, string(example.JSON), sendFHIR)
			Expect(a.status).To(Equal(http.StatusCreated), example.Type+"/"+example.ID+": "+a.body)
			ids[example.Type] = append(ids[example.Type], example.ID)
		}
		for name, sample := range found { // what is referred to must be there to be included
			target, id, ok := strings.Cut(sample.value, "/")
			if kind, kept := r4.TypeOf(target); ok && kept && !slices.Contains(ids[kind.Name], id) {
				a := s.do("PUT", "/"+sample.value, `{"resourceType":"`+target+`","id":"`+id+`"`+least[target]+`}`, sendFHIR)
				Expect(a.status).To(Equal(http.StatusCreated), name+": "+a.body)
				ids[target] = append(ids[target], id)
			}
		}
	})
	matches := func(typeName, name, value string) []string {
		GinkgoHelper()
		a := s.do("GET", "/"+typeName+"?_count=1000&"+url.Values{name: {value}}.Encode(), "", acceptFHIR)
		Expect(a.status).To(Equal(http.StatusOK), name+"="+value+": "+a.body)
		return a.json().ids()
	}

	for _, kind := range r4.Types {
		for _, p := range search.ParametersOf(kind.Name) {
			It("of "+kind.Name+": "+p.Name+" finds what has the value, misses what has not, and tells what is missing", func() {
				sample, ok := found[kind.Name+"."+p.Name]
				Expect(ok).To(BeTrue(), "no record has a value: add one to sweepBodies")
				Expect(matches(kind.Name, p.Name, sample.value)).To(ContainElement(sample.id), sample.value)
				missed := matches(kind.Name, p.Name, nobody(p, sample.value))
				if p.Type == "token" && (sample.value == "true" || sample.value == "false") {
					Expect(missed).NotTo(ContainElement(sample.id))
				} else {
					Expect(missed).To(BeEmpty())
				}
				if p.Type == "composite" {
					Expect(s.do("GET", "/"+kind.Name+"?"+p.Name+":missing=true", "").status).To(Equal(http.StatusBadRequest))
					return
				}
				there, missing := matches(kind.Name, p.Name+":missing", "false"), matches(kind.Name, p.Name+":missing", "true")
				Expect(there).To(ContainElement(sample.id))
				Expect(missing).NotTo(ContainElement(sample.id))
				Expect(append(there, missing...)).To(ConsistOf(ids[kind.Name]))
			})
		}
		includes, _ := search.IncludesOf(kind.Name)
		It("of "+kind.Name+" to others includes these, and it the other way round", func() {
			for _, include := range includes {
				sample := found[strings.Replace(include, ":", ".", 1)]
				target, id, _ := strings.Cut(sample.value, "/")
				with := s.do("GET", "/"+kind.Name+"?_id="+sample.id+"&_include="+include, "", acceptFHIR)
				Expect(with.status).To(Equal(http.StatusOK), with.body)
				Expect(modes(with.json())).To(HaveKeyWithValue(kind.Name+"/"+sample.id, "match"), include)
				if sample.value == kind.Name+"/"+sample.id { // it refers to itself
					continue
				}
				Expect(modes(with.json())).To(HaveKeyWithValue(sample.value, "include"), include)
				back := s.do("GET", "/"+target+"?_id="+id+"&_revinclude="+include, "", acceptFHIR)
				Expect(back.status).To(Equal(http.StatusOK), back.body)
				Expect(modes(back.json())).To(HaveKeyWithValue(kind.Name+"/"+sample.id, "include"), include)
			}
		})
		It("of the contract is taken on "+kind.Name, func() {
			for _, query := range []string{
				"_count=5", "_sort=-date", "_elements=id", "telecom=phone|nobody", "telecom=nobody", "_id=nobody", "identifier=urn:x|nobody", "patient=Patient/nobody",
				"patient=nobody", "_has=Group:member:code=nobody", "_tag=urn:x|nobody", "_security=urn:x|nobody", "_profile=urn:nobody", "_include=Patient:organization", "_revinclude=RelatedPerson:patient",
			} {
				a := s.do("GET", "/"+kind.Segment+"?"+query, "")
				Expect(a.status).To(Equal(http.StatusOK), query+": "+a.body)
				if strings.Contains(query, "nobody") {
					Expect(a.json()).To(HaveKeyWithValue("total", BeEquivalentTo(0)), query)
				}
			}
		})
	}
	It("is one of the 179 of R4, or of those that are common, the contract's or additions", func() {
		defined := 0
		for _, kind := range r4.Types {
			for _, p := range search.ParametersOf(kind.Name) {
				_, ofR4 := definedParameters()[p.Definition]
				if ofR4 && (strings.Contains(p.Definition, "/"+kind.Name+"-") || strings.Contains(p.Definition, "/individual-")) {
					defined++
				}
			}
		}
		Expect(defined).To(Equal(179))
	})
})
