package postgres

import (
	"errors"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// TestTooManyConditions shows that a query beyond sqlplan.MaxConditions is refused before it needs the
// database, whichever of its types has the conditions.
func TestTooManyConditions(t *testing.T) {
	conditions := store.All{}
	for range sqlplan.MaxConditions {
		conditions = append(conditions, store.HasLabel("l"))
	}
	for name, query := range map[string]store.Query{
		"of all types":  {Types: []string{"Patient"}, Where: conditions, Count: 1},
		"of one type":   {Types: []string{"Patient", "Person"}, ByType: map[string]store.Condition{"Person": conditions}, Count: 1},
		"below another": {Types: []string{"Patient"}, Where: store.Not{Condition: conditions[1:]}, Count: 1},
		"total alone":   {Types: []string{"Patient"}, Where: conditions},
	} {
		_, err := new(Store).Search(t.Context(), query)
		var tooMany *store.TooManyConditionsError
		if !errors.As(err, &tooMany) || tooMany.Max != sqlplan.MaxConditions || tooMany.Count != sqlplan.MaxConditions+1 {
			t.Errorf("%s: got %v, want *store.TooManyConditionsError for %d conditions", name, err, sqlplan.MaxConditions+1)
		}
	}
}
