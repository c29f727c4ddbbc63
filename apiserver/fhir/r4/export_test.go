package r4

// Generate makes valid resources of a type at random, for tests of what is built on
// this package.
func Generate(typeName string, seed uint64, count int) [][]byte {
	g := newGenerator(seed)
	resources := make([][]byte, count)
	for i := range resources {
		resources[i] = g.generate(typeName)
	}
	return resources
}
