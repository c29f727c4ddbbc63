package r4

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

// place is a value in a resource: that of a member of an object, or an item of the
// array that a member has.
type place struct {
	owner  *node // the object
	typ    typeIndex
	member int
	*element
	isExtension bool
	// array is what the value is an item of, or nil.
	array *node
	item  int
	path  string
	// inContained is set if the place is in a contained resource.
	inContained bool
}

func (p place) value() *node {
	if p.array != nil {
		return p.array.items[p.item]
	}
	return p.owner.members[p.member].value
}

// replace puts another value in place, and returns how to undo that.
func (p place) replace(v *node) (undo func()) {
	if p.array != nil {
		before := p.array.items[p.item]
		p.array.items[p.item] = v
		return func() { p.array.items[p.item] = before }
	}
	before := p.owner.members[p.member].value
	p.owner.members[p.member].value = v
	return func() { p.owner.members[p.member].value = before }
}

// places are all values of a resource that are elements, but for those that the server sets: the
// reader does not look at them.
func places(root *node, rootType typeIndex) []place {
	var found []place
	var walk func(n *node, typ typeIndex, path string, inContained bool)
	walk = func(n *node, typ typeIndex, path string, inContained bool) {
		for i, m := range n.members {
			name := strings.Trim(m.name, `"`)
			e := lookup(typ, []byte(strings.TrimPrefix(name, "_")))
			if e == nil || typ == typeMeta && path == types[rootType].name+".meta" && isServerSet(name) {
				continue
			}
			p := place{owner: n, typ: typ, member: i, element: e, isExtension: name[0] == '_', path: path + "." + e.base(), inContained: inContained}
			found = append(found, p)
			values := []*node{m.value}
			if m.value.kind == '[' {
				values = m.value.items
			}
			for j, v := range values {
				if m.value.kind == '[' {
					p.array, p.item = m.value, j
					found = append(found, p)
				}
				if v.kind != '{' {
					continue
				}
				inner := e.typ
				if p.isExtension {
					inner = typeElement
				}
				if e.typ == typeResource {
					inner, _ = resourceNamed([]byte(v.get("resourceType").text()))
				}
				walk(v, inner, p.path, inContained || e.name == "contained")
			}
		}
	}
	walk(root, rootType, types[rootType].name, false)
	return found
}

// tally counts what is found of one kind of damage.
type tally struct{ done, found int }

// TestDamage breaks valid resources in every way at every place, and counts what
// the reader finds.
func TestDamage(t *testing.T) {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	tallies := make([]tally, len(damages))
	try := func(typeName string, root *node) {
		typ, _ := resourceNamed([]byte(typeName))
		before := root.String()
		eachDamage(root, typ, func(kind int, p place, body []byte) {
			tallies[kind].done++
			_, err := Read(body, Options{Type: typeName})
			switch {
			case err == nil:
				t.Errorf("missed %s at %s: %s", damages[kind].name, p.path, p.owner)
			case !isLocated(err, p):
				t.Errorf("%s at %s was reported elsewhere: %v\n%s", damages[kind].name, p.path, err, p.owner)
			default:
				tallies[kind].found++
			}
		})
		if _, err := Read([]byte(before), Options{Type: typeName}); err != nil || before != root.String() {
			t.Fatalf("what was broken was not whole: %v", err)
		}
	}
	var names []string
	for _, typ := range Types {
		names = append(names, typ.Name)
	}
	found, err := examples.Load(path, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range found {
		try(example.Type, parseTree(t, example.JSON))
	}
	for _, typ := range Types {
		g := newGenerator(77)
		for range 10 {
			try(typ.Name, parseTree(t, g.generate(typ.Name)))
		}
	}
	var report strings.Builder
	total := tally{}
	for i, one := range tallies {
		fmt.Fprintf(&report, "%7d of %7d  %s\n", one.found, one.done, damages[i].name)
		total.done += one.done
		total.found += one.found
		if one.done == 0 {
			t.Errorf("%s was never tried", damages[i].name)
		}
	}
	t.Logf("found %d of %d (%.3f %%)\n%s", total.found, total.done, 100*float64(total.found)/float64(total.done), report.String())
}

// inFHIRPath are the parts of an expression that say more than the names of elements.
var inFHIRPath = regexp.MustCompile(`\[\d+\]|\.ofType\(\w+\)`)

// isLocated reports whether one of the issues is about the place, what is in it, or
// the object that has it.
func isLocated(err error, p place) bool {
	var issues Errors
	if !errors.As(err, &issues) {
		return false
	}
	parent := p.path[:strings.LastIndexByte(p.path, '.')]
	return slices.ContainsFunc(issues, func(i Issue) bool {
		at := inFHIRPath.ReplaceAllString(i.Expression, "")
		return at == parent || strings.HasPrefix(at, p.path)
	})
}

// eachDamage breaks a resource in every way, one at a time.
func eachDamage(root *node, typ typeIndex, visit func(kind int, p place, body []byte)) {
	for _, p := range places(root, typ) {
		for kind, d := range damages {
			undo := d.do(p)
			if undo == nil {
				continue
			}
			visit(kind, p, root.appendTo(nil))
			undo()
		}
	}
}
