package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The extensions and prefixes of HL7's definitions that matter here.
const (
	structurePrefix = "http://hl7.org/fhir/StructureDefinition/"
	systemPrefix    = "http://hl7.org/fhirpath/System."
	fhirType        = structurePrefix + "structuredefinition-fhir-type"
	maxValueSet     = structurePrefix + "elementdefinition-maxValueSet"
	simpleQuantity  = structurePrefix + "SimpleQuantity"
	// anyResource is the type of an element that holds a resource of any type.
	anyResource = "Resource"
)

// The kinds of types, in the order of the table. The reader recognises primitives and resources by
// their position in the table.
const (
	kindPrimitive = iota
	kindDatatype
	kindComponent // the inside of an element that has elements of its own
	kindResource
)

// typeRow is a type of the table.
type typeRow struct {
	name     string // Patient, Patient.contact, HumanName, boolean
	kind     int
	elements []elementRow
	// constrained reports whether the type has invariants of its own.
	constrained bool
}

// elementRow is an element in one of its JSON spellings.
type elementRow struct {
	name       string // deceasedBoolean
	base       string // deceased
	ord        int    // the same for all spellings of one element
	typeName   string
	many       bool
	required   bool
	summary    bool
	modifier   bool
	plain      bool // an attribute of its parent: no id, no extensions
	simple     bool // a Quantity without a comparator
	valueSet   string
	references []string // names of resource types; none for any
}

// tabulate makes the table of types, in its order.
func (d *definitions) tabulate() ([]typeRow, error) {
	var rows []typeRow
	for _, s := range d.structures {
		// Resource stands for a resource of any type; Element is the type of a primitive extension.
		switch {
		case s.Name == anyResource:
			rows = append(rows, typeRow{name: s.Name, kind: kindDatatype})
		case s.Abstract && s.Name != "Element":
		case s.Kind == "primitive-type":
			rows = append(rows, typeRow{name: s.Name, kind: kindPrimitive})
		default:
			found, err := s.types()
			if err != nil {
				return nil, fmt.Errorf("type %s: %w", s.Name, err)
			}
			rows = append(rows, found...)
		}
	}
	slices.SortFunc(rows, func(a, b typeRow) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	return rows, checkTypes(rows)
}

// types returns the type that the structure defines, and the types of its components.
func (s structure) types() ([]typeRow, error) {
	kind := kindDatatype
	if s.Kind == "resource" {
		kind = kindResource
	}
	rows := []typeRow{{name: s.Name, kind: kind}}
	at := map[string]int{s.Name: 0} // index in rows by path
	for i, definition := range s.Snapshot.Element {
		if own := rowOf(rows, at, definition.Path); own != nil && constrains(definition) {
			own.constrained = true
		}
		if i == 0 {
			continue
		}
		parent, name := cut(definition.Path)
		index, ok := at[parent]
		if !ok {
			return nil, fmt.Errorf("element %s comes before its parent %s", definition.Path, parent)
		}
		if s.isComponent(i) {
			at[definition.Path] = len(rows)
			rows = append(rows, typeRow{name: definition.Path, kind: kindComponent, constrained: constrains(definition)})
		}
		elements, err := definition.rows(name, rows[index].nextOrd(), at)
		if err != nil {
			return nil, fmt.Errorf("element %s: %w", definition.Path, err)
		}
		rows[index].elements = append(rows[index].elements, elements...)
	}
	return rows, nil
}

func rowOf(rows []typeRow, at map[string]int, path string) *typeRow {
	if index, ok := at[path]; ok {
		return &rows[index]
	}
	return nil
}

// isComponent reports whether the element at index has elements of its own.
func (s structure) isComponent(index int) bool {
	elements := s.Snapshot.Element
	return index+1 < len(elements) && strings.HasPrefix(elements[index+1].Path, elements[index].Path+".")
}

// constrains reports whether the element has invariants in addition to those that all elements and
// resources have.
func constrains(definition elementDefinition) bool {
	return slices.ContainsFunc(definition.Constraint, func(c invariant) bool {
		return c.Severity == "error" && c.Key != "ele-1" && !strings.HasPrefix(c.Key, "dom-")
	})
}

func (t typeRow) nextOrd() int {
	if len(t.elements) == 0 {
		return 0
	}
	return t.elements[len(t.elements)-1].ord + 1
}

// rows returns a row for each JSON spelling of an element.
func (e elementDefinition) rows(name string, ord int, components map[string]int) ([]elementRow, error) {
	row := elementRow{
		name: name, base: name, ord: ord, required: e.Min > 0, many: e.Max == "*",
		summary: e.IsSummary, modifier: e.IsModifier, valueSet: e.valueSet(),
	}
	if e.Min > 1 || e.Max != "1" && e.Max != "*" {
		return nil, fmt.Errorf("the cardinality %d..%s is not supported", e.Min, e.Max)
	}
	if e.ContentReference != "" {
		row.typeName = strings.TrimPrefix(e.ContentReference, "#")
		return []elementRow{row}, nil
	}
	if _, ok := components[e.Path]; ok {
		row.typeName = e.Path
		return []elementRow{row}, nil
	}
	base, isChoice := strings.CutSuffix(name, "[x]")
	if !isChoice && len(e.Type) != 1 {
		return nil, fmt.Errorf("it has %d types, want one", len(e.Type))
	}
	var rows []elementRow
	for _, use := range e.Type {
		spelling := row
		spelling.base = base
		if isChoice {
			spelling.name = base + strings.ToUpper(use.Code[:1]) + use.Code[1:]
		}
		if err := spelling.setType(e.Path, use); err != nil {
			return nil, err
		}
		rows = append(rows, spelling)
	}
	return rows, nil
}

// setType sets the type of the element, whether it is plain or simple and, for a Reference, the types
// that it may refer to.
func (r *elementRow) setType(path string, use typeUse) error {
	r.typeName = use.Code
	if strings.HasPrefix(use.Code, systemPrefix) {
		r.plain = true
		r.typeName = ""
		for _, e := range use.Extension {
			if e.URL == fhirType {
				r.typeName = e.ValueURL
			}
		}
	}
	r.plain = r.plain || use.Code == "xhtml"
	for _, profile := range use.Profile {
		if profile != simpleQuantity {
			return fmt.Errorf("the profile %s is not supported", profile)
		}
		r.simple = true
	}
	if use.Code != "Reference" {
		return nil
	}
	for _, profile := range use.TargetProfile {
		name, ok := strings.CutPrefix(profile, structurePrefix)
		if !ok {
			return fmt.Errorf("the target profile %s is not supported", profile)
		}
		if name == anyResource {
			r.references = nil
			return nil
		}
		r.references = append(r.references, name)
	}
	r.references = append(r.references, errata[path]...)
	slices.Sort(r.references)
	return nil
}

// errata are reference targets that R4's definitions lack and R4's own examples use: the parent of
// DeviceMetric/example is a DeviceDefinition.
var errata = map[string][]string{"DeviceMetric.parent": {"DeviceDefinition"}}

// valueSet returns the URL of the value set from which codes must be, or an empty string if there is
// none.
func (e elementDefinition) valueSet() string {
	if e.Binding == nil {
		return ""
	}
	if e.Binding.Strength == "required" {
		return unversioned(e.Binding.ValueSet)
	}
	for _, x := range e.Binding.Extension {
		if x.URL == maxValueSet && unversioned(x.ValueCanonical) == allLanguages {
			return allLanguages
		}
	}
	return ""
}

func unversioned(canonical string) string {
	url, _, _ := strings.Cut(canonical, "|")
	return url
}

func cut(path string) (parent, name string) {
	dot := strings.LastIndexByte(path, '.')
	return path[:dot], path[dot+1:]
}

// checkTypes returns an error if an assumption of the reader does not hold. It also sets the type of
// the ids of resources.
func checkTypes(rows []typeRow) error {
	known := map[string]bool{}
	for _, row := range rows {
		known[row.name] = true
	}
	for i := range rows {
		if n := rows[i].nextOrd(); n > 64 {
			return fmt.Errorf("%s has %d elements; the reader has 64 bits for them", rows[i].name, n)
		}
		for j := range rows[i].elements {
			element := &rows[i].elements[j]
			if rows[i].kind == kindResource && element.name == "id" {
				element.typeName = "id" // R4 resource.html#id; the definition says string
			}
			if rows[i].kind != kindResource && element.ord == 0 && element.name != "id" {
				return fmt.Errorf("the first element of %s is %s; the reader expects the id there", rows[i].name, element.name)
			}
			if !known[element.typeName] {
				return fmt.Errorf("%s.%s has the unknown type %q", rows[i].name, element.name, element.typeName)
			}
		}
	}
	return nil
}
