package r4

//go:generate go run ../../../hack/r4gen -out . -cache ../../../bin

// typeIndex is a type's place in the table of types.
type typeIndex uint16

func (t typeIndex) isPrimitive() bool { return t < firstDatatype }
func (t typeIndex) isResource() bool  { return t >= firstResource }

// typeDef is a type: a primitive, a datatype, the inside of an element that has
// elements of its own (a component), or a resource.
type typeDef struct {
	name string
	// required has the bits of the elements that must be there.
	required uint64
	elements []element
}

// element is an element of a type in one of its JSON spellings: a choice such as
// deceased[x] has one for each type.
type element struct {
	name string
	// ord numbers the elements of a type; it is the same for all spellings of one.
	ord uint8
	typ typeIndex
	// stem is the length of the name without the type, of a choice.
	stem  uint8
	is    trait
	codes valueSetIndex
	// targets is an index in targetSets.
	targets uint16
}

// trait is what else is to be known about an element.
type trait uint8

const (
	// many repeat: their value is an array.
	many trait = 1 << iota
	// summary elements are part of a summary, modifier elements change what others mean.
	summary
	modifier
	// plain elements are attributes of what they are in: they have no companion.
	plain
	// simple quantities have no comparator.
	simple
)

func (e *element) bit() uint64 { return 1 << (e.ord & 63) }

func (e *element) isMany() bool   { return e.is&many != 0 }
func (e *element) isChoice() bool { return e.stem != 0 }

// base is the element's name in FHIRPath, without the type of a choice.
func (e *element) base() string {
	if e.stem != 0 {
		return e.name[:e.stem]
	}
	return e.name
}

// names finds elements by name: for each type a hash table of places in its elements,
// counted from 1.
var names = indexNames()

func indexNames() (index [numTypes][]uint16) {
	for t := range index {
		elements := types[t].elements
		if len(elements) == 0 {
			continue
		}
		size := 4
		for size < 2*len(elements) {
			size *= 2
		}
		slots := make([]uint16, size)
		for i := range elements {
			at := hash([]byte(elements[i].name)) & (size - 1)
			for slots[at] != 0 {
				at = (at + 1) & (size - 1)
			}
			slots[at] = uint16(i + 1)
		}
		index[t] = slots
	}
	return index
}

// hash is cheap and tells the element names of one type well apart.
func hash(name []byte) int {
	if len(name) == 0 {
		return 0
	}
	last := len(name) - 1
	return len(name)*7 + int(name[0])*31 + int(name[last])*5 + int(name[last/2])*17
}

// lookup finds an element of a type.
func lookup(t typeIndex, name []byte) *element {
	e, _ := lookupRow(t, name)
	return e
}

// lookupRow finds an element of a type, and its place among them.
func lookupRow(t typeIndex, name []byte) (*element, uint16) {
	slots := names[t]
	if len(slots) == 0 {
		return nil, 0
	}
	for at := hash(name); ; at++ {
		slot := slots[at&(len(slots)-1)]
		if slot == 0 {
			return nil, 0
		}
		if e := &types[t].elements[slot-1]; e.name == string(name) {
			return e, slot - 1
		}
	}
}

// resourceNamed finds a resource type by FHIR's name.
func resourceNamed(name []byte) (typeIndex, bool) {
	low, high := firstResource, numTypes // in the order of their names
	for low < high {
		middle := (low + high) / 2
		switch got := types[middle].name; {
		case got == string(name):
			return middle, true
		case got < string(name):
			low = middle + 1
		default:
			high = middle
		}
	}
	return 0, false
}

// valueSetIndex is a value set's place in the table of value sets; 0 is none.
type valueSetIndex uint16

// valueSet is a value set with all its codes.
type valueSet struct {
	url     string
	systems []codeList
}

// codeList has the codes of one system, in order. A system that no list can hold
// has none here.
type codeList struct {
	system string
	codes  []string
}
