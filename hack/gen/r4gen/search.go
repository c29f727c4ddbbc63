package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kept are the resource types that the server keeps. The tables of types have all types of R4, but
// search parameters and compartments only these.
var kept = map[string]bool{
	"Device": true, "DeviceDefinition": true, "DeviceMetric": true, "Endpoint": true, "Group": true,
	"HealthcareService": true, "Location": true, "Organization": true, "OrganizationAffiliation": true,
	"Patient": true, "Person": true, "Practitioner": true, "PractitionerRole": true, "RelatedPerson": true,
}

// notExtracted are parameters of all resources that do not search the value of an element.
var notExtracted = map[string]bool{"_content": true, "_query": true, "_filter": true, "_text": true}

// searchProgram says where a search parameter finds its values in one type.
type searchProgram struct {
	base, code, kind string
	// id is the id of HL7's definition, empty if there is none.
	id         string
	targets    []string
	paths      []searchPath
	components []searchComponent
	// single reports whether the parameter finds at most one element of a resource.
	single bool
}

// searchPath is a path from the resource to values, and the conditions on these values.
type searchPath struct {
	steps []string
	// as is the type that a choice element must have.
	as string
	// where is the name of an element whose value must equal is.
	where, is string
	// refersTo is the type that a reference must refer to.
	refersTo string
	// truth makes the result a boolean: whether there is a value that is not false.
	truth bool
	// urls are the URLs that the extensions on the path must have, in their order.
	urls []string
}

type searchComponent struct {
	code string
	path searchPath
}

// compile returns the programs of all search parameters of the types that the server keeps, sorted by
// type and name.
func (d *definitions) compile(rows []typeRow) ([]searchProgram, error) {
	byURL := map[string]searchParameter{}
	var programs []searchProgram
	for _, p := range d.parameters {
		byURL["http://hl7.org/fhir/SearchParameter/"+p.ID] = p
	}
	for _, p := range d.parameters {
		for _, base := range p.Base {
			if !kept[base] && base != anyResource || !p.isSupported(base) {
				continue
			}
			program, err := p.compile(base, rows, byURL)
			if err != nil {
				return nil, fmt.Errorf("search parameter %s of %s: %w", p.Code, base, err)
			}
			programs = append(programs, program)
		}
	}
	programs = append(programs, contractual(programs, rows)...)
	for i := range programs {
		programs[i].single = programs[i].findsOne(rows)
	}
	slices.SortFunc(programs, func(a, b searchProgram) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.code, b.code))
	})
	return programs, nil
}

// contractual returns the parameters telecom and patient for the types for which R4 does not define
// them: telecom finds any contact point, and patient any reference to a patient. Contract 4.1.
func contractual(standard []searchProgram, rows []typeRow) []searchProgram {
	var programs []searchProgram
	for base := range kept {
		has := func(code string) bool {
			return slices.ContainsFunc(standard, func(p searchProgram) bool { return p.base == base && p.code == code })
		}
		telecom := searchProgram{base: base, code: "telecom", kind: "token"}
		patient := searchProgram{base: base, code: "patient", kind: "reference", targets: []string{"Patient"}}
		walkElements(base, nil, rows, func(steps []string, element elementRow) {
			switch {
			case element.typeName == "ContactPoint":
				telecom.paths = append(telecom.paths, searchPath{steps: steps})
			case element.typeName == "Reference" && slices.Contains(element.references, "Patient"):
				patient.paths = append(patient.paths, searchPath{steps: steps, refersTo: "Patient"})
			}
		})
		for _, program := range []searchProgram{telecom, patient} {
			if len(program.paths) > 0 && !has(program.code) {
				programs = append(programs, program)
			}
		}
	}
	return programs
}

// walkElements calls visit with each element of a type and of its components. steps are the names from
// the resource to the element.
func walkElements(typeName string, steps []string, rows []typeRow, visit func(steps []string, element elementRow)) {
	for _, row := range rows {
		if row.name != typeName {
			continue
		}
		for _, element := range row.elements {
			below := slices.Concat(steps, []string{element.base})
			visit(below, element)
			if strings.Contains(element.typeName, ".") {
				walkElements(element.typeName, below, rows, visit)
			}
		}
	}
}

// isSupported reports whether the parameter is an addition, or one that R4 defines for base. HL7's
// package also has parameters for extensions, and examples, which are not supported.
func (p searchParameter) isSupported(base string) bool {
	return p.added || (strings.HasPrefix(p.ID, base+"-") || strings.HasPrefix(p.ID, "individual-")) && !notExtracted[p.Code]
}

func (p searchParameter) compile(base string, rows []typeRow, byURL map[string]searchParameter) (searchProgram, error) {
	program := searchProgram{base: base, code: p.Code, kind: p.Type, id: p.ID, targets: p.Target}
	slices.Sort(program.targets)
	for _, alternative := range strings.Split(p.Expression, "|") {
		path, own, err := parsePath(strings.TrimSpace(alternative), base)
		if err != nil {
			return program, err
		}
		if !own {
			continue
		}
		if base != anyResource {
			if err := checkPath(path, base, rows); err != nil {
				return program, err
			}
		}
		program.paths = append(program.paths, path)
	}
	if len(program.paths) == 0 {
		return program, fmt.Errorf("no alternative of its expression %q begins with %s", p.Expression, base)
	}
	for _, c := range p.Component {
		definition, ok := byURL[c.Definition]
		if !ok {
			return program, fmt.Errorf("the definition %s of its component is not a search parameter of the package", c.Definition)
		}
		path, _, err := parsePath(base+"."+c.Expression, base)
		if err != nil {
			return program, err
		}
		program.components = append(program.components, searchComponent{definition.Code, path})
	}
	return program, nil
}

// These patterns match the forms of expressions that R4 has for the supported types.
var (
	asType    = regexp.MustCompile(`^\((.+) as (\w+)\)$`)
	whereIs   = regexp.MustCompile(`^(.+)\.where\((\w+)='(\w+)'\)$`)
	resolveIs = regexp.MustCompile(`^(.+)\.where\(resolve\(\) is (\w+)\)$`)
	truth     = regexp.MustCompile(`^(.+)\.exists\(\) and (.+) != false$`)
	asCall    = regexp.MustCompile(`^(.+)\.(?:as|ofType)\((\w+)\)$`)
	plainPath = regexp.MustCompile(`^\w+(\.\w+)+$`)
	// extensionIs selects an extension by its URL, in the expressions of additions.
	extensionIs = regexp.MustCompile(`\.extension\('([^']+)'\)`)
)

// parsePath parses one alternative of an expression. own reports whether it starts from the base
// type.
func parsePath(expression, base string) (path searchPath, own bool, err error) {
	text := expression
	if m := asType.FindStringSubmatch(text); m != nil {
		text, path.as = m[1], m[2]
	} else if m := asCall.FindStringSubmatch(text); m != nil {
		text, path.as = m[1], m[2]
	}
	switch {
	case resolveIs.MatchString(text):
		m := resolveIs.FindStringSubmatch(text)
		text, path.refersTo = m[1], m[2]
	case whereIs.MatchString(text):
		m := whereIs.FindStringSubmatch(text)
		text, path.where, path.is = m[1], m[2], m[3]
	case truth.MatchString(text):
		m := truth.FindStringSubmatch(text)
		if m[1] != m[2] {
			return path, false, unsupported(expression)
		}
		text, path.truth = m[1], true
	}
	if text == base {
		return path, true, nil
	}
	for _, m := range extensionIs.FindAllStringSubmatch(text, -1) {
		path.urls = append(path.urls, m[1])
	}
	text = extensionIs.ReplaceAllString(text, ".extension")
	if !plainPath.MatchString(text) || strings.HasSuffix(text, ".extension") {
		return path, false, unsupported(expression)
	}
	steps := strings.Split(text, ".")
	path.steps = steps[1:]
	return path, steps[0] == base, nil
}

func unsupported(expression string) error {
	return fmt.Errorf("the expression %q is not supported: want Type.element, with .where(element='value'), .where(resolve() is Type), .ofType(type) or .extension('URL').value.ofType(type)", expression)
}

// checkPath returns an error if a step of the path is not an element of the type before it.
func checkPath(path searchPath, base string, rows []typeRow) error {
	typeName := base
	for _, step := range path.steps {
		element, ok := elementAt(rows, typeName, step, path.as)
		if !ok {
			return fmt.Errorf("%s has no element %s", typeName, step)
		}
		typeName = element.typeName
	}
	return nil
}

// elementAt finds an element of a type. Of a choice, it finds the spelling with the type as,
// if as is not empty.
func elementAt(rows []typeRow, typeName, name, as string) (found elementRow, ok bool) {
	for _, row := range rows {
		if row.name != typeName {
			continue
		}
		for _, element := range row.elements {
			if element.base == name && (as == "" || element.name == element.base || strings.EqualFold(element.name, name+as)) {
				found, ok = element, true
			}
		}
	}
	return found, ok
}

// findsOne reports whether, by R4's cardinalities, the parameter finds at most one element of a
// resource: all alternatives lead to the same element, and no step to it repeats. The alternatives may
// differ in the type of a choice element, because an instance has only one of its types.
func (p searchProgram) findsOne(rows []typeRow) bool {
	typeName := p.base
	if typeName == anyResource {
		typeName = elementsOfAll
	}
	for _, path := range p.paths[1:] {
		if !slices.Equal(path.steps, p.paths[0].steps) {
			return false
		}
	}
	for _, step := range p.paths[0].steps {
		element, ok := elementAt(rows, typeName, step, "")
		if !ok || element.many {
			return false
		}
		typeName = element.typeName
	}
	return true
}

// elementsOfAll is a type that has the elements of all resources.
const elementsOfAll = "Patient"

func writeSearch(b *bytes.Buffer, programs []searchProgram) {
	b.WriteString("// searchParameters are the parameters of R4, of the contract and of search_additions.json for the supported\n// types, sorted by type and name. Those of Resource apply to all types.\nvar searchParameters = [...]SearchParameter{\n")
	for _, p := range programs {
		fmt.Fprintf(b, "{base: %s, Name: %q, Kind: %s", identifier("type", p.base), p.code, identifier("Search", p.kind))
		if len(p.targets) > 0 {
			b.WriteString(", targets: []typeIndex{")
			for _, target := range p.targets {
				b.WriteString(identifier("type", target) + ", ")
			}
			b.WriteString("}")
		}
		if p.id != "" {
			fmt.Fprintf(b, ", definition: %q", p.id)
		}
		if p.single {
			b.WriteString(", Single: true")
		}
		b.WriteString(", paths: []searchPath{")
		for _, path := range p.paths {
			writePath(b, path)
		}
		b.WriteString("}")
		if len(p.components) > 0 {
			b.WriteString(", Components: []SearchComponent{")
			for _, c := range p.components {
				fmt.Fprintf(b, "{Name: %q, Element: %q},", c.code, strings.Join(c.path.steps, "."))
			}
			b.WriteString("}")
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
}

func writePath(b *bytes.Buffer, path searchPath) {
	fmt.Fprintf(b, "{steps: []string{%s}", quoteAll(path.steps))
	if path.as != "" {
		fmt.Fprintf(b, ", as: %s", identifier("type", path.as))
	}
	if path.where != "" {
		fmt.Fprintf(b, ", where: %q, is: %q", path.where, path.is)
	}
	if path.refersTo != "" {
		fmt.Fprintf(b, ", refersTo: %s", identifier("type", path.refersTo))
	}
	if path.truth {
		b.WriteString(", truth: true")
	}
	if len(path.urls) > 0 {
		fmt.Fprintf(b, ", urls: []string{%s}", quoteAll(path.urls))
	}
	b.WriteString("},")
}

func quoteAll(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("%q", value)
	}
	return strings.Join(quoted, ", ")
}
