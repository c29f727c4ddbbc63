package history

import (
	"maps"
	"slices"
)

// Search is the result of a search for all records of a type after all operations had ended: the
// newest version of each live record, by its name. By is the name of the reader.
type Search struct {
	By    string
	Found map[string]Version
}

// CheckSearch returns a violation for each record in which a search differs from the final readings.
func CheckSearch(search Search, readings []Reading) []Violation {
	var found []Violation
	live := map[string]bool{}
	for i := range readings {
		reading := &readings[i]
		newest, ok := reading.Newest()
		if !reading.Final || !ok || newest.Deleted {
			continue
		}
		live[reading.Record] = true
		hit, ok := search.Found[reading.Record]
		r := &record{name: reading.Record}
		switch {
		case !ok:
			found = append(found, r.violation(WrongSearch, "%s does not find the record, of which %[3]s reads version %[2]d", search.By, newest.Number, reading.By))
		case hit.Number != newest.Number || hit.Token != newest.Token || hit.Damage != "":
			found = append(found, r.violation(WrongSearch, "%s finds %+v, but %s reads %+v", search.By, hit, reading.By, newest))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(search.Found)) {
		if !live[name] {
			r := &record{name: name}
			found = append(found, r.violation(WrongSearch, "%s finds version %d of the record, which no final reading has as live", search.By, search.Found[name].Number))
		}
	}
	return found
}
