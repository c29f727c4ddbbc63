package extract

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// IsFacet reports whether a search parameter is a facet: one of a fixed list of parameters with few
// distinct codes, each of which selects many records.
func IsFacet(param string) bool { return slices.Contains(facets, param) }

// facets are the parameters that applications combine most with other parameters. A new facet changes
// the stored facets and signatures of every record, so it is added for a measured gain only.
var facets = []string{"active", "deceased", "gender"}

// CommonCodes returns the codes of facets that many records of a type have. A new one changes what is
// stored for every record.
func CommonCodes(recordType string) []store.CommonCode { return commonCodes[recordType] }

var commonCodes = func() map[string][]store.CommonCode {
	common := func(param, system, code string) store.CommonCode {
		return store.CommonCode{Param: param, Token: store.Token{System: system, Code: code}}
	}
	const genders = "http://hl7.org/fhir/administrative-gender"
	all := map[string][]store.CommonCode{}
	for _, typ := range r4.Types {
		for _, c := range []store.CommonCode{
			common("active", specialValues, "true"), common("deceased", specialValues, "false"), common("gender", genders, "female"), common("gender", genders, "male"),
		} {
			if Ordinal(typ.Name, c.Param) >= 0 {
				all[typ.Name] = append(all[typ.Name], c)
			}
		}
	}
	return all
}()
