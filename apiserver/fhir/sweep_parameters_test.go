package fhir_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// hiddenValues are values of the search parameters of a type, in a search's spelling, that hidden
// records have.
func hiddenValues(kind string) map[string][]string {
	GinkgoHelper()
	values := map[string][]string{"_id": {"hidden-r", "HIDDEN-R", "hidden-r,seen-a"}, "_lastUpdated": {"gtMARK1"}, "_security": {"R", "V", "http://terminology.hl7.org/CodeSystem/v3-Confidentiality|R"}, "_tag": {"secret", "urn:tag|secret"}, "_profile": {"http://secret.example/p"}}
	for _, record := range []sweepRecord{
		{kind, "hidden-r", hiddenWord, "seen-a", labelR}, {kind, "hidden-p", hiddenWord, "nowhere", labelProfile}, {kind, "linked", hiddenWord, "linked", ""},
	} {
		read, err := r4.Read([]byte(record.body()), r4.Options{Type: kind})
		Expect(err).NotTo(HaveOccurred(), kind)
		for _, v := range r4.Index(read.Body, kind) {
			if v.Parameter() == nil {
				continue
			}
			name, value := v.Parameter().Name, searched(v.Type(), v.JSON(read.Body))
			for _, spelling := range []string{value, value[strings.LastIndex(value, "/")+1:]} { // a bare id, too
				if (v.Type() == "Reference" || spelling == value) && value != "" && !slices.Contains(values[name], spelling) {
					values[name] = append(values[name], spelling)
				}
			}
		}
	}
	return values
}

var knownModifiers = regexp.MustCompile(`a [a-z]+ parameter; supported modifiers: ([^"]*?)"`)

// modifiersOf asks the server which modifiers a parameter takes.
func (t *twin) modifiersOf(kind, name string) []string {
	GinkgoHelper()
	a := t.ask(question{method: "GET", path: "/" + kind + "?" + name + ":nosuch=x"})
	found := knownModifiers.FindStringSubmatch(a.body)
	Expect(found).NotTo(BeNil(), a.body)
	if found[1] == "none" {
		return nil
	}
	return strings.Split(found[1], ", ")
}

// modified are the values to try with a modifier, nil for modifiers that the sweep does not know.
func modified(p search.Parameter, modifier string, values []string) []string {
	switch {
	case modifier == "missing":
		return []string{"true", "false"}
	case modifier == "not":
		return append([]string{nobody(p, values[0])}, values...)
	case modifier == "in", modifier == "not-in":
		return []string{"http://hl7.org/fhir/ValueSet/administrative-gender"}
	case modifier == "text":
		return []string{hiddenWord[:3]}
	case modifier == "of-type":
		return []string{"urn:kind|MR|" + hiddenWord}
	case modifier == "contains":
		return []string{hiddenWord[1:]}
	case modifier == "identifier":
		return []string{"urn:ri|" + hiddenWord}
	case modifier == "exact", modifier == "above", modifier == "below":
		return values
	case slices.Contains(allTypes(), modifier):
		return []string{"seen-a", "hidden-r", modifier + "/hidden-r", "nowhere", "referred", "linked"}
	}
	return nil
}

// parameterQuestions are searches of a type by each parameter and modifier.
func (b *twins) parameterQuestions(kind string) []question {
	GinkgoHelper()
	var questions []question
	values := hiddenValues(kind)
	add := func(name, covers, value string) {
		questions = append(questions, question{method: "GET", path: "/" + kind + "?" + url.Values{name: {value}}.Encode(), covers: covers, walks: true})
	}
	for _, p := range search.ParametersOf(kind) {
		Expect(values[p.Name]).NotTo(BeEmpty(), "sweepBodies has no value for "+kind+"."+p.Name)
		covers := kind + "." + p.Name
		for _, value := range values[p.Name] {
			if p.Type == "date" {
				for _, prefix := range []string{"", "eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap"} {
					if prefix == "ap" && p.Name == "_lastUpdated" {
						continue // a range that depends on the time of the question
					}
					add(p.Name, covers, prefix+strings.TrimLeft(value, "abcdefghijklmnopqrstuvwxyz"))
				}
			} else {
				add(p.Name, covers, value)
			}
			if _, code, ok := strings.Cut(value, "|"); ok && p.Type == "token" {
				add(p.Name, covers, code)
			}
		}
		for _, modifier := range b.with.modifiersOf(kind, p.Name) {
			asked := modified(p, modifier, values[p.Name])
			Expect(asked).NotTo(BeEmpty(), "the sweep has no question for the modifier "+modifier+" of "+kind+"."+p.Name)
			for _, value := range asked {
				add(p.Name+":"+modifier, covers+":"+modifier, value)
			}
		}
	}
	for _, barren := range []string{"telecom", "patient"} {
		add(barren, "", hiddenWord)
		add(barren+":missing", "", "true")
	}
	return questions
}

// blunt reports whether no question can tell of hidden records what a cover names: all records have
// a gender that is in the value set asked for, other codes are in none, and the parents of
// DeviceMetrics are Devices.
func blunt(covers string) bool {
	_, modifier, _ := strings.Cut(covers, ":")
	return modifier == "in" || strings.HasSuffix(covers, "gender:not-in") ||
		covers == "DeviceMetric.parent:DeviceDefinition" || covers == "DeviceDefinition has DeviceMetric.parent"
}

// controlQuestions are searches of a type by what does not choose records: orders, counts, totals,
// summaries and pages.
func (b *twins) controlQuestions(kind string) []question {
	GinkgoHelper()
	var questions []question
	get := func(covers, query string) {
		questions = append(questions, question{method: "GET", path: "/" + kind + "?" + query, covers: covers, walks: true})
	}
	for _, key := range b.with.known(kind, "_sort=nosuch", `give one of (.*?), with a leading`) {
		for _, descending := range []string{"", "-"} {
			get(kind+" sort "+key, "_sort="+descending+key)
			get(kind+" sort "+key, "_count=1&_sort="+descending+key)
		}
	}
	asked := map[string][]string{
		"_sort":         {"_id"},
		"_count":        {"0", "1", "2", "1000"},
		"_total":        {"none", "estimate", "accurate"},
		"_summary":      {"true", "text", "data", "count", "false"},
		"_elements":     {"identifier"},
		"_format":       {"json"},
		"_pretty":       {"true"},
		"_include":      {"*"},
		"_revinclude":   {"*"},
		"_has":          {"Group:member:_id=hidden-r", "Group:member:_security=R"},
		"_page_token":   {"nonsense"},
		"_include:x":    {"*"},
		"_revinclude:x": {"*"},
	}
	for _, name := range b.with.known(kind, "nosuch=x", `supported parameters: (.*?)"`) {
		if isParameter(kind, name) {
			continue
		}
		Expect(asked[name]).NotTo(BeEmpty(), "the sweep has no question for the parameter "+name)
		for _, value := range asked[name] {
			get("", url.Values{name: {value}}.Encode())
			get("", url.Values{name: {value}, "identifier": {"urn:i|" + hiddenWord}, "_total": {"accurate"}}.Encode())
		}
	}
	return append(questions, question{method: "POST", path: "/" + kind + "/_search", body: "identifier=urn:i|" + hiddenWord, header: header("Content-Type", "application/x-www-form-urlencoded")})
}

func isParameter(kind, name string) bool {
	return name == "telecom" || name == "patient" || slices.ContainsFunc(search.ParametersOf(kind), func(p search.Parameter) bool { return p.Name == name })
}

// known asks the server for the names that it lists in an error.
func (t *twin) known(kind, query, pattern string) []string {
	GinkgoHelper()
	a := t.ask(question{method: "GET", path: "/" + kind + "?" + query})
	found := regexp.MustCompile(pattern).FindStringSubmatch(a.body)
	Expect(found).NotTo(BeNil(), a.body)
	return strings.Split(found[1], ", ")
}

// joinQuestions are searches of a type that follow references: chains, _has and includes.
func joinQuestions(kind string) []question {
	var questions []question
	ask := func(covers, format string, args ...any) {
		questions = append(questions, question{method: "GET", path: "/" + kind + "?" + fmt.Sprintf(format, args...), covers: covers, walks: true})
	}
	leaves := []string{"_id=hidden-r", "_security=R", "identifier=urn:only%7Chidden-v", "_id:missing=false", "_tag:missing=true"}
	for _, leaf := range leaves {
		for _, include := range includesFrom(kind) {
			param := include.param
			ask(kind+" chain "+param, "%s:%s.%s", param, include.target, leaf)
			for _, second := range includesFrom(include.target) {
				if strings.HasPrefix(leaf, "_security") || strings.HasPrefix(leaf, "_id=") {
					ask("", "%s:%s.%s:%s.%s", param, include.target, second.param, second.target, leaf)
				}
			}
		}
		for _, back := range includesTo(kind) {
			ask(kind+" has "+back.from+"."+back.param, "_has:%s:%s:%s", back.from, back.param, leaf)
			if strings.HasPrefix(leaf, "_id=") {
				ask("", "_has=%s:%s:%s", back.from, back.param, strings.ReplaceAll(leaf, "=", "%3D"))
			}
			for _, second := range includesTo(back.from) {
				if strings.HasPrefix(leaf, "_security") || strings.HasPrefix(leaf, "_id=") {
					ask("", "_has:%s:%s:_has:%s:%s:%s", back.from, back.param, second.from, second.param, leaf)
				}
			}
		}
	}
	for _, include := range includesFrom(kind) {
		for _, iterate := range []string{"", ":iterate"} {
			ask(kind+" include "+include.param, "_include%s=%s:%s:%s", iterate, kind, include.param, include.target)
			ask("", "_include%s=%s:%s&_count=1", iterate, kind, include.param)
		}
	}
	for _, back := range includesTo(kind) {
		for _, iterate := range []string{"", ":iterate"} {
			ask(kind+" revinclude "+back.from+"."+back.param, "_revinclude%s=%s:%s", iterate, back.from, back.param)
			ask("", "_revinclude%s=%s:%s&_id=seen-b", iterate, back.from, back.param)
		}
	}
	for _, all := range []string{"_include=*", "_include:iterate=*", "_revinclude=*", "_revinclude:iterate=*", "_include=*&_revinclude=*", "_include=" + kind + ":*", "_include:iterate=*&_revinclude:iterate=*&_count=1"} {
		ask(kind+" "+all, "%s", all)
		ask("", "%s&_id=hidden-r", all)
	}
	return questions
}

// edge is a reference parameter of a type, and a type that it leads to.
type edge struct{ from, param, target string }

func includesFrom(kind string) []edge {
	var edges []edge
	includes, _ := search.IncludesOf(kind)
	for _, include := range includes {
		_, param, _ := strings.Cut(include, ":")
		for _, target := range allTypes() {
			if slices.Contains(search.ReferenceParameters(kind, target), param) {
				edges = append(edges, edge{kind, param, target})
			}
		}
	}
	return edges
}

func includesTo(kind string) []edge {
	var edges []edge
	for _, from := range allTypes() {
		for _, param := range search.ReferenceParameters(from, kind) {
			edges = append(edges, edge{from, param, kind})
		}
	}
	return edges
}
