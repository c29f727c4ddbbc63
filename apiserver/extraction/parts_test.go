package extraction_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// TestTextKeys shows that the keys of all parameters that may have texts differ.
func TestTextKeys(t *testing.T) {
	keys := map[int32]string{}
	add := func(recordType, param string) {
		name, key := recordType+" "+param, indexrow.TextKey(recordType, param)
		if other, taken := keys[key]; taken && other != name {
			t.Errorf("%s and %s have the same key; choose another name", other, name)
		}
		keys[key] = name
	}
	for _, kind := range r4.Types {
		for _, p := range r4.SearchParameters(kind.Name) {
			for _, param := range []string{p.Name, p.Name + ":text"} {
				add(kind.Name, param)
			}
		}
	}
	eachSample(t, func(recordType string, body []byte) { // also records of AHDS
		for _, value := range extractor.Extract(recordType, body) {
			if _, ok := value.Value.(store.Text); ok {
				add(recordType, value.Param)
			}
		}
	})
}

// TestOrdinals fails if a parameter has another number than in the bits that sites in Postgres have
// stored, or if a type has more parameters than a column has bits. Parameters may be added at the end of
// the alphabet. Any other change needs a migration after which all records are reindexed.
func TestOrdinals(t *testing.T) {
	var got []string
	for _, kind := range r4.Types {
		numbers, greatest := fnv.New32a(), 0
		for _, p := range r4.SearchParameters(kind.Name) {
			n := extractor.Ordinal(kind.Name, p.Name)
			if indexrow.PresenceBit(n) == 0 {
				t.Errorf("%s %s has the number %d, for which there is no bit", kind.Name, p.Name, n)
			}
			greatest = max(greatest, n)
		}
		for n := range greatest + 1 {
			for _, p := range r4.SearchParameters(kind.Name) {
				if extractor.Ordinal(kind.Name, p.Name) == n {
					_, _ = fmt.Fprintln(numbers, n, p.Name) // a hash returns no errors
				}
			}
		}
		got = append(got, fmt.Sprintf("%s: %d, %08x", kind.Name, greatest+1, numbers.Sum32()))
	}
	want := []string{
		"Device: 19, 11a190b4", "DeviceDefinition: 10, 0709c6fa", "DeviceMetric: 11, 8377e405", "Endpoint: 13, 37963ac2", "Group: 17, 43fef420",
		"HealthcareService: 19, 769b3562", "Location: 22, d5f10e6a", "Organization: 20, 8362047d", "OrganizationAffiliation: 20, e5e5474d",
		"Patient: 33, 248210ce", "Person: 25, ace44de4", "Practitioner: 23, c47208bd", "PractitionerRole: 19, 6b8bf3a5", "RelatedPerson: 23, 0c3d2766",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parameters of a type and the hash of their numbers (-want +got):\n%s", diff)
	}
	for _, none := range [][2]string{{"Patient", "family:text"}, {"Patient", "unknown"}, {"AvailabilitySlot", "startAt"}} {
		if n := extractor.Ordinal(none[0], none[1]); n != -1 {
			t.Errorf("%v has the number %d, want none", none, n)
		}
	}
}

// TestCommonCodes fails if the common codes of a type are others than those whose bits sites in Postgres
// have stored. It shows that they have bits of their own, and that each value with such a code has its
// system.
func TestCommonCodes(t *testing.T) {
	got := map[string]string{}
	for _, kind := range r4.Types {
		codes := extractor.CommonCodes(kind.Name)
		used := indexrow.HasCommonBits
		for _, p := range r4.SearchParameters(kind.Name) {
			used |= indexrow.PresenceBit(extractor.Ordinal(kind.Name, p.Name))
		}
		for _, c := range codes {
			bit := indexrow.CommonBit(codes, store.TokenIs{Param: c.Param, Code: &c.Token.Code})
			if bit == 0 || used&bit != 0 || !extractor.IsFacet(c.Param) {
				t.Errorf("%s: %s %s has the bit %x, others have %x; or it is no facet", kind.Name, c.Param, c.Token.Code, bit, used)
			}
			used |= bit
			got[kind.Name] += c.Param + " " + c.Token.Code + ", "
		}
	}
	const active, genders = "active true, ", "gender female, gender male, "
	want := map[string]string{
		"Patient": active + "deceased false, " + genders, "Practitioner": active + genders, "RelatedPerson": active + genders, "Person": genders,
		"HealthcareService": active, "Organization": active, "OrganizationAffiliation": active, "PractitionerRole": active,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("common codes (-want +got):\n%s", diff)
	}
	found := map[store.CommonCode]int{}
	eachSample(t, func(recordType string, body []byte) {
		for _, value := range extractor.Extract(recordType, body) {
			token, _ := value.Value.(store.Token)
			for _, c := range extractor.CommonCodes(recordType) {
				if value.Param != c.Param || token.Code != c.Token.Code {
					continue
				}
				found[c]++
				if token != c.Token {
					t.Errorf("%s: %s has the token %v, and %v is a common code", recordType, c.Param, token, c.Token)
				}
			}
		}
	})
	if len(found) != 4 {
		t.Errorf("common codes in the samples: %v, want 4", found)
	}
}

// TestParts shows which parameters are parts, and that each text or token of a part is also one of the
// whole.
func TestParts(t *testing.T) {
	got := map[string][]string{}
	for _, param := range []string{"name", "address", "telecom", "phonetic", "family", "identifier"} {
		got[param] = extractor.Parts("Patient", param)
		slices.Sort(got[param])
	}
	want := map[string][]string{
		"name": {"family", "given"}, "address": {"address-city", "address-country", "address-postalcode", "address-state"},
		"telecom": {"email", "phone"}, "phonetic": nil, "family": nil, "identifier": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parts of Patient's parameters (-want +got):\n%s", diff)
	}
	for _, kind := range r4.Types {
		of := map[string]string{}
		for _, p := range r4.SearchParameters(kind.Name) {
			for _, part := range extractor.Parts(kind.Name, p.Name) {
				if whole, taken := of[part]; taken || len(extractor.Parts(kind.Name, part)) > 0 {
					t.Errorf("%s: %s is a part of %s, of %s, or has parts", kind.Name, part, p.Name, whole)
				}
				of[part] = p.Name
			}
		}
	}
	var texts, tokens int
	eachSample(t, func(recordType string, body []byte) {
		values := extractor.Extract(recordType, body)
		for _, p := range r4.SearchParameters(recordType) {
			for _, part := range extractor.Parts(recordType, p.Name) {
				for _, value := range values {
					if value.Param != part || value.Value == nil {
						continue
					}
					switch value.Value.(type) {
					case store.Text:
						texts++
					case store.Token:
						tokens++
					}
					if !slices.Contains(values, store.IndexValue{Param: p.Name, Value: value.Value}) {
						t.Errorf("%s: %v of %s is no value of %s", recordType, value.Value, part, p.Name)
					}
				}
			}
		}
	})
	if texts < 100 || tokens < 20 {
		t.Errorf("%d texts and %d tokens of parts in the samples", texts, tokens)
	}
}
