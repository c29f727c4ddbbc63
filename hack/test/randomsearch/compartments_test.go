package randomsearch

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// compartmentRecords is how many records of each of the 14 types there are: 504 in all.
const compartmentRecords = 36

// TestCompartments compares what is in the compartment of every record with HL7's definitions
// of compartments and of search parameters, evaluated on every record: on each engine, in both
// dialects, and for types that are in no such compartment.
func TestCompartments(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, *seed, open(t))
			s.fill(compartmentRecords)
			w := s.world()
			if len(w.Records) < 500 {
				t.Fatalf("there are %d records", len(w.Records))
			}
			members, asked := map[string]int{}, 0
			for _, of := range searchtruth.Kept {
				if w.compartments[of] == nil {
					s.refused(of, s.data.ids[of][0], append(searchtruth.Kept, "*")...)
					continue
				}
				outside := slices.DeleteFunc(slices.Clone(searchtruth.Kept), func(typ string) bool {
					// R4 has no Device in the compartment of a Patient, but a search may name it.
					return w.compartments[of][typ] != nil || of == "Patient" && typ == "Device"
				})
				s.refused(of, s.data.ids[of][0], outside...)
				for _, id := range append([]string{"gone"}, s.data.ids[of]...) {
					for _, typ := range append([]string{"*"}, slices.Sorted(maps.Keys(w.compartments[of]))...) {
						members[of+"/"+typ] += s.compareMembers(w, of, id, typ)
						asked += 2
					}
				}
			}
			t.Logf("%d searches of %d records found %v", asked, len(w.Records), members)
			for _, of := range slices.Sorted(maps.Keys(w.compartments)) {
				for typ := range w.compartments[of] {
					if members[of+"/"+typ] == 0 {
						t.Errorf("no %s is in the compartment of a %s", typ, of)
					}
				}
			}
		})
	}
}

// compareMembers compares the members of a type with those that there must be, and returns how
// many there are.
func (s *site) compareMembers(w *World, of, id, typ string) int {
	types := []string{typ}
	if typ == "*" {
		types = slices.Collect(maps.Keys(w.compartments[of]))
	}
	var want []string
	for _, r := range w.Matches(types, []Filter{{Holds: w.inCompartment(of, id)}}, []SortKey{{Name: "_id"}}) {
		want = append(want, r.String())
	}
	slices.Sort(want)
	kept, _ := r4.TypeOf(of)
	for accept, segment := range map[string]string{"application/fhir+json": of, "application/json": kept.Segment} {
		path := fmt.Sprintf("/site/s/fhir/%s/%s/%s?_count=1000", segment, strings.ToUpper(id), typ)
		a, err := s.read(http.MethodGet, path, "", map[string]string{"Accept": accept})
		if err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
		slices.Sort(a.matches)
		if !slices.Equal(a.matches, want) || a.total == nil || *a.total != len(want) || len(a.included) > 0 {
			s.t.Errorf("%s as %s: got %v of %d, want %v", path, accept, a.matches, *a.total, want)
		}
	}
	return len(want)
}

// refused expects types not to be in a compartment.
func (s *site) refused(of, id string, types ...string) {
	for _, typ := range types {
		if w := s.do(http.MethodGet, "/site/s/fhir/"+of+"/"+id+"/"+typ, "", nil); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "not_in_compartment") {
			s.t.Errorf("%s/%s/%s: %d %s", of, id, typ, w.Code, w.Body)
		}
	}
}
