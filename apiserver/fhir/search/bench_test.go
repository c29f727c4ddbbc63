package search

import "testing"

func BenchmarkParse(b *testing.B) {
	for name, query := range map[string]string{
		"token":       "identifier=urn:chip|985000000000001&_count=20",
		"name prefix": "name=smi&_count=20",
		"two filters": "name=smi&birthdate=ge1980-01-01",
		"chain":       "general-practitioner:Practitioner.name=smi",
		"sorted page": "active=true&_sort=family,-birthdate&_count=20",
	} {
		given := values(b, query)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(given, options(Options{})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
