package r4

//go:generate go run ../../../hack/gen/r4gen -out . -cache ../../../bin

// typeIndex is the index of a type in the table types.
type typeIndex uint16

func (t typeIndex) isPrimitive() bool { return t < firstDatatype }
func (t typeIndex) isResource() bool  { return t >= firstResource }

// typeDef is a type: a primitive, a datatype, a component (an element with elements of its own), or
// a resource.
type typeDef struct {
	name string
	// required has the bits of the required elements.
	required uint64
	elements []element
}

// element is an element of a type under one of its JSON names. A choice such as deceased[x] has one
// name for each type.
type element struct {
	name string
	// ord is the number of the element in its type. All names of a choice have the same number.
	ord uint8
	typ typeIndex
	// stem is the length of a choice's name without the type. It is 0 for other elements.
	stem  uint8
	is    trait
	codes valueSetIndex
	// targets is the index of the allowed target types in targetSets. 0 means any type.
	targets uint16
}

// trait is a set of properties of an element.
type trait uint8

const (
	// many is set if the element repeats, so that its value is an array.
	many trait = 1 << iota
	// summary is set if the response to _summary=true has the element. modifier is set if the element
	// changes the meaning of other elements.
	summary
	modifier
	// plain is set for an element that is an attribute in FHIR's XML format. Such an element has no
	// primitive extension.
	plain
	// simple is set if the element is a SimpleQuantity, which has no comparator.
	simple
)

func (e *element) bit() uint64 { return 1 << (e.ord & 63) }

func (e *element) isMany() bool   { return e.is&many != 0 }
func (e *element) isChoice() bool { return e.stem != 0 }

// base returns the element's name in FHIRPath, without the type of a choice.
func (e *element) base() string {
	if e.stem != 0 {
		return e.name[:e.stem]
	}
	return e.name
}

// names has a hash table for each type, from names of elements to their indexes plus 1.
var names = buildNameIndex()

func buildNameIndex() (index [numTypes][]uint16) {
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

// hash is a fast hash with few collisions between the element names of a type.
func hash(name []byte) int {
	if len(name) == 0 {
		return 0
	}
	last := len(name) - 1
	return len(name)*7 + int(name[0])*31 + int(name[last])*5 + int(name[last/2])*17
}

// lookup returns the element of a type with a name, and nil if there is none.
func lookup(t typeIndex, name []byte) *element {
	e, _ := lookupRow(t, name)
	return e
}

// lookupRow returns the element of a type with a name, and its index. It returns nil if there is
// none.
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

// resourceNamed returns the resource type with FHIR's name.
func resourceNamed(name []byte) (typeIndex, bool) {
	low, high := firstResource, numTypes // types are sorted by name
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

// valueSetIndex is the index of a value set in the table valueSets. 0 means that there is none.
type valueSetIndex uint16

// valueSet is a value set with its codes by system.
type valueSet struct {
	url     string
	systems []codeList
}

// codeList is the sorted list of a system's codes. It is empty for a system that cannot be
// enumerated.
type codeList struct {
	system string
	codes  []string
}
