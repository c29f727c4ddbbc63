package r4

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// generator makes valid resources at random, of all that a type allows.
type generator struct {
	*rand.Rand
	// local are the ids of the contained resources of the resource that is being
	// made, by type, with whether something refers to them.
	local map[typeIndex][]*localID
}

type localID struct {
	id       string
	referred bool
}

func newGenerator(seed uint64) *generator { return &generator{Rand: rand.New(rand.NewPCG(seed, 4))} }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// pick is one of some values.
func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// generate makes a resource of a type, in JSON.
func (g *generator) generate(typeName string) []byte {
	typ, _ := resourceNamed([]byte(typeName))
	g.local = map[typeIndex][]*localID{}
	var contained []*node
	if lookup(typ, []byte("contained")) != nil && g.chance(20) {
		for i := range 1 + g.IntN(2) {
			inner, _ := resourceNamed([]byte(pick(g, Types...).Name))
			local := &localID{id: fmt.Sprintf("c%d", i)}
			resource := g.object(inner, 2, false)
			resource.drop("meta")
			resource.put("id", quoted(local.id))
			resource.members = slices.Insert(resource.members, g.IntN(len(resource.members)+1), branch{`"resourceType"`, quoted(types[inner].name)})
			contained = append(contained, resource)
			g.local[inner] = append(g.local[inner], local)
		}
	}
	root := g.object(typ, 0, false)
	if len(contained) > 0 {
		root.put("contained", list(contained...))
		g.referToAll(root)
	}
	root.members = append(root.members, branch{`"resourceType"`, quoted(typeName)})
	g.shuffle(root)
	return g.write(nil, root)
}

// referToAll adds references to contained resources that have none.
func (g *generator) referToAll(root *node) {
	var extensions []*node
	if given := root.get("extension"); given != nil {
		extensions = given.items
	}
	for _, locals := range g.local {
		for _, local := range locals {
			if !local.referred {
				reference := dict().put("reference", quoted("#"+local.id))
				extensions = append(extensions, dict().put("url", quoted("urn:x")).put("valueReference", reference))
			}
		}
	}
	if len(extensions) > 0 {
		root.put("extension", list(extensions...))
	}
}

// object makes an object of a type. The deeper it is, the less it has.
func (g *generator) object(typ typeIndex, depth int, simpleQuantity bool) *node {
	n := dict()
	elements := types[typ].elements
	for i := 0; i < len(elements); {
		spellings := 1
		for i+spellings < len(elements) && elements[i+spellings].ord == elements[i].ord {
			spellings++
		}
		e := &elements[i+g.IntN(spellings)]
		required := types[typ].required&e.bit() != 0
		i += spellings
		if e.name == "contained" || !required && !g.chance(max(45-13*depth, 2)) || !required && depth > 3 && !e.typ.isPrimitive() {
			continue
		}
		g.add(n, e, depth, required)
	}
	if repair := repairs[typ]; repair != nil {
		repair(g, n)
	}
	if simpleQuantity {
		n.drop("comparator")
		n.drop("_comparator")
	}
	if !hasContent(n) {
		return g.least(typ, depth)
	}
	return n
}

// least makes an object of a type that could be empty.
func (g *generator) least(typ typeIndex, depth int) *node {
	if typ.isResource() {
		return dict()
	}
	n := dict()
	if lookup(typ, []byte("url")) != nil && typ == typeExtension {
		return dict().put("url", quoted("urn:x")).put("valueCode", quoted("c"))
	}
	return n.put("extension", list(g.object(typeExtension, max(depth, 3), false)))
}

func hasContent(n *node) bool {
	for _, m := range n.members {
		if m.name != `"id"` {
			return true
		}
	}
	return false
}

// add gives an object an element.
func (g *generator) add(n *node, e *element, depth int, required bool) {
	if !e.typ.isPrimitive() {
		values := g.several(e, func() *node {
			if e.typ == typeReference {
				return g.reference(e, depth)
			}
			if e.typ == typeResource {
				return dict().put("resourceType", quoted("Basic")).put("code", dict().put("text", quoted(g.words())))
			}
			if e.typ == typeCodeableConcept && e.codes != 0 {
				return g.concept(e)
			}
			return g.object(e.typ, depth+1, e.is&simple != 0)
		})
		n.put(e.name, values)
		return
	}
	if e.is&plain != 0 || !g.chance(8) {
		n.put(e.name, g.several(e, func() *node { return g.primitive(e) }))
		return
	}
	extended := func() *node { return dict().put("extension", list(g.object(typeExtension, 4, false))) }
	if !e.isMany() {
		n.put("_"+e.name, extended())
		if required || g.chance(50) {
			n.put(e.name, g.primitive(e))
		}
		return
	}
	n.put(e.name, list(g.primitive(e), scalar("null"), g.primitive(e)))
	n.put("_"+e.name, list(scalar("null"), extended(), extended()))
}

func (g *generator) several(e *element, one func() *node) *node {
	if !e.isMany() {
		return one()
	}
	n := list(one())
	for g.chance(30) {
		n.items = append(n.items, one())
	}
	return n
}

// reference makes a reference to one of the types that the element allows.
func (g *generator) reference(e *element, depth int) *node {
	targets := targetSets[e.targets]
	if len(targets) == 0 {
		targets = []typeIndex{typePatient, typeObservation, typeOrganization}
	}
	target := pick(g, targets...)
	name := types[target].name
	if locals := g.local[target]; len(locals) > 0 && depth < 3 && g.chance(60) {
		local := pick(g, locals...)
		local.referred = true
		return dict().put("reference", quoted("#"+local.id))
	}
	n := dict()
	switch g.IntN(7) {
	case 0:
		n.put("reference", quoted("https://fhir.example.org/r4/"+name+"/"+g.id()))
	case 1:
		n.put("reference", quoted("urn:uuid:"+g.uuid()))
	case 2:
		n.put("identifier", dict().put("system", quoted("urn:x")).put("value", quoted(g.id()))).put("type", quoted(name))
	case 3:
		n.put("display", quoted(g.words()))
	case 4:
		n.put("reference", quoted(name+"/"+g.id()+"/_history/"+g.id()))
	case 5:
		n.put("reference", quoted("http://example.org/not/fhir?at=all"))
	default:
		n.put("reference", quoted(name+"/"+g.id())).put("type", quoted(name))
	}
	return n
}

func (g *generator) concept(e *element) *node {
	if e.codes == codesAllLanguages && g.chance(30) {
		return pick(g,
			dict().put("text", quoted("Frisian")),
			dict().put("coding", list(dict().put("display", quoted("Frisian")))),
			dict().put("coding", list(dict().put("system", quoted("urn:ietf:bcp:47")))),
		)
	}
	if e.codes == codesAllLanguages {
		return dict().put("coding", list(dict().put("system", quoted("urn:ietf:bcp:47")).put("code", quoted("nl-NL"))))
	}
	system := pick(g, valueSets[e.codes].systems...)
	return dict().put("coding", list(dict().put("system", quoted(system.system)).put("code", quoted(pick(g, system.codes...)))))
}

// primitive makes a value of a primitive element.
func (g *generator) primitive(e *element) *node {
	switch e.typ {
	case typeBoolean:
		return scalar(pick(g, "true", "false"))
	case typeInteger:
		return scalar(pick(g, "0", "-1", "2147483647", "-2147483648", fmt.Sprint(g.IntN(1000))))
	case typeUnsignedInt:
		return scalar(pick(g, "0", "2147483647", fmt.Sprint(g.IntN(1000))))
	case typePositiveInt:
		return scalar(pick(g, "1", "2147483647", fmt.Sprint(1+g.IntN(1000))))
	case typeDecimal:
		return scalar(pick(g, "0", "-0", "1.50", "-3.14159", "1e400", "1E-7", "0.00", "12345678901234567890.1234567890"))
	case typeXhtml:
		return quoted(g.narrative())
	}
	return quoted(g.primitiveText(e))
}

func (g *generator) primitiveText(e *element) string {
	switch e.typ {
	case typeBase64Binary:
		bytes := make([]byte, 1+g.IntN(40))
		for i := range bytes {
			bytes[i] = byte(g.IntN(256))
		}
		return base64.StdEncoding.EncodeToString(bytes)
	case typeCode:
		return g.code(e)
	case typeDate:
		return g.moment(1 + g.IntN(3))
	case typeDateTime:
		return g.moment(1 + g.IntN(4))
	case typeInstant:
		return g.moment(4)
	case typeTime:
		return g.clock()
	case typeID:
		return g.id()
	case typeOID:
		return pick(g, "urn:oid:1.2.3", "urn:oid:2.16.840.1.113883", "urn:oid:0.0")
	case typeUUID:
		return "urn:uuid:" + g.uuid()
	case typeURI, typeURL, typeCanonical:
		return pick(g, "http://example.org/a?b=c#d", "urn:oid:1.2.3", "mailto:a@b.example", "relative/path", "http://example.org/é|1.0", "urn:uuid:"+g.uuid())
	case typeMarkdown:
		return g.words() + "\n\n* " + g.words()
	default:
		if e.is&plain != 0 {
			return g.id()
		}
		return g.words()
	}
}

func (g *generator) code(e *element) string {
	switch e.codes {
	case 0:
		return pick(g, "a", "A-1", "two words", "ä", "x.y_z")
	case codesMimetypes:
		return pick(g, "text/plain", "application/fhir+json; fhirVersion=4.0", "image/svg+xml")
	case codesAllLanguages:
		return pick(g, "en", "de-CH", "zh-Hant-TW", "x-klingon")
	}
	return pick(g, pick(g, valueSets[e.codes].systems...).codes...)
}

func (g *generator) id() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."
	id := make([]byte, 1+g.IntN(64))
	for i := range id {
		id[i] = letters[g.IntN(len(letters))]
	}
	return string(id)
}

func (g *generator) uuid() string {
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", g.Uint32(), g.IntN(1<<16), g.IntN(1<<16), g.IntN(1<<16), g.Uint64()>>16)
}

func (g *generator) words() string {
	words := []string{"Bella", "Zoë", "the \"cat\"", "猫", "𝔘nicode", "a\tb", "line\r\nbreak", "back\\slash", "/", "x", "x y"}
	text := pick(g, words...)
	for g.chance(60) {
		text += " " + pick(g, words...)
	}
	return text
}

// moment is a date or a time of a precision from 1 to 4.
func (g *generator) moment(precision int) string {
	year, month := 1+g.IntN(9999), 1+g.IntN(12)
	text := fmt.Sprintf("%04d", year)
	if precision > 1 {
		text += fmt.Sprintf("-%02d", month)
	}
	if precision > 2 {
		text += fmt.Sprintf("-%02d", 1+g.IntN(daysOf(year, month)))
	}
	if precision > 3 {
		text += "T" + g.clock() + pick(g, "Z", "+02:00", "-11:30", "+14:00", "-00:00")
	}
	return text
}

func (g *generator) clock() string {
	text := fmt.Sprintf("%02d:%02d:%02d", g.IntN(24), g.IntN(60), g.IntN(61))
	if g.chance(30) {
		text += "." + strings.Repeat("1", 1+g.IntN(12))
	}
	return text
}

func (g *generator) narrative() string {
	inner := pick(g, "text", "<p>a &amp; b &#8212; c</p>", `<table class="x"><tbody><tr><td colspan="2">a</td></tr></tbody></table>`,
		`<img src="#i" alt="an image"/>`, "<!-- a comment --> <b>b</b><br/>", `<a href="https://example.org/?a=b&amp;c=d" title='"'>a</a>`, "<ul>\n<li>é</li>\n</ul>")
	return `<div xmlns="http://www.w3.org/1999/xhtml">` + inner + "</div>"
}

// shuffle puts the members of an object in any order.
func (g *generator) shuffle(n *node) {
	g.Shuffle(len(n.members), func(i, j int) { n.members[i], n.members[j] = n.members[j], n.members[i] })
}

// write writes a value with white space here and there.
func (g *generator) write(dst []byte, n *node) []byte {
	space := func() {
		if g.chance(10) {
			dst = append(dst, pick(g, " ", "\n", "\t", "\r\n  ")...)
		}
	}
	space()
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			space()
			dst = append(append(dst, m.name...), ':')
			dst = g.write(dst, m.value)
		}
		dst = append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = g.write(dst, item)
		}
		dst = append(dst, ']')
	default:
		dst = append(dst, n.raw...)
	}
	space()
	return dst
}

// TestGenerated reads valid resources made at random: all are accepted, and come
// back byte for byte but for what the server replaces.
func TestGenerated(t *testing.T) {
	perType := 2500
	if testing.Short() {
		perType = 200
	}
	size := 0
	for i, typ := range Types {
		g := newGenerator(uint64(i))
		for n := range perType {
			body := g.generate(typ.Name)
			size += len(body)
			if _, err := Read(body, Options{Type: typ.Name}); err != nil {
				t.Fatalf("%s: %v\n%+v\n%s", typ.Name, err, err, body)
			}
			if n%10 == 0 {
				checkRoundTrip(t, typ.Name, body)
			}
		}
	}
	t.Logf("%d resources, %d bytes", perType*len(Types), size)
}

// TestGeneratedOfAllTypes reads resources of the types that can be contained only.
func TestGeneratedOfAllTypes(t *testing.T) {
	for typ := firstResource; typ < numTypes; typ++ {
		g := newGenerator(uint64(typ))
		for range 20 {
			body := g.generate(types[typ].name)
			if _, err := Read(body, Options{Type: types[typ].name}); err != nil {
				t.Fatalf("%s: %v\n%s", types[typ].name, err, body)
			}
		}
	}
}
