package main

import (
	"bytes"
	"fmt"
	"strings"
)

// guide is the path of the list of search parameters for users, from the folder of the tables.
const guide = "../../../docs/guides/search-parameters.md"

const guideHead = `# Search parameters

<!-- Written by go generate ./apiserver/fhir/r4. DO NOT EDIT. -->

[The FHIR API](api.md#search) describes values and modifiers. Parameters without a note are those of R4.

| type | parameter | kind | what R4 does not define |
|---|---|---|---|
`

// writeGuide returns the list of the parameters of each type. For a parameter that R4 does not define,
// it gives the expression or the elements.
func writeGuide(programs []searchProgram, parameters []searchParameter) []byte {
	expressions := map[string]string{}
	for _, p := range parameters {
		if p.added {
			expressions[p.Base[0]+" "+p.Code] = "`" + p.Expression + "`"
		}
	}
	b := bytes.NewBufferString(guideHead)
	for _, p := range programs {
		note, added := expressions[p.base+" "+p.code]
		if !added && p.id == "" {
			note = "any of " + pathsOf(p)
		}
		base := p.base
		if base == anyResource {
			base = "all types"
		}
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", base, p.code, p.kind, note)
	}
	return b.Bytes()
}

// pathsOf returns the elements that a parameter of the contract searches.
func pathsOf(p searchProgram) string {
	var paths []string
	for _, path := range p.paths {
		paths = append(paths, "`"+p.base+"."+strings.Join(path.steps, ".")+"`")
	}
	return strings.Join(paths, ", ")
}
