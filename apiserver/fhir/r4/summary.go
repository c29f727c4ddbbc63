package r4

// SummaryElements are the elements at the top of a type that R4 has in summaries. R4
// search.html#summary.
func SummaryElements(typeName string) []string {
	return elementsAtTop(typeName, func(e *element) bool { return e.is&summary != 0 })
}

// DataElements are the elements at the top of a type but for its text.
func DataElements(typeName string) []string {
	return elementsAtTop(typeName, func(e *element) bool { return e.name != "text" })
}

func elementsAtTop(typeName string, wanted func(*element) bool) []string {
	typ, _ := resourceNamed([]byte(typeName))
	var names []string
	for i := range types[typ].elements {
		if e := &types[typ].elements[i]; wanted(e) {
			names = append(names, e.name)
		}
	}
	return names
}
