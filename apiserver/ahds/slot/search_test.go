package slot

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestWhere(t *testing.T) {
	code := "x"
	is := store.TokenIs{Param: "resourceId", Code: &code}
	month := maxLength.Microseconds()
	tests := map[string]struct {
		conditions []store.Condition
		want       store.Condition
	}{
		"nothing":         {nil, store.All(nil)},
		"nothing of time": {[]store.Condition{is}, store.All{is}},
		"what overlaps": {
			[]store.Condition{ends(1001, store.TheEnd), is, starts(store.TheBeginning, 1999)},
			store.All{is, store.PeriodIs{Param: paramTime, From: store.Bounds{Least: 1001 - month, Most: 1999}, Until: store.Bounds{Least: 1001, Most: store.TheEnd}}},
		},
		"the narrower bounds": {
			[]store.Condition{starts(5, store.TheEnd), starts(7, 9), ends(store.TheBeginning, 8), ends(store.TheBeginning, 6)},
			store.All{store.PeriodIs{Param: paramTime, From: store.Bounds{Least: 7, Most: 9}, Until: store.Bounds{Least: store.TheBeginning, Most: 6}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Where(test.conditions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLongestSlotIsFound shows that the bound on beginnings leaves no slot out.
func TestLongestSlotIsFound(t *testing.T) {
	content := schema.Content{
		"startAt": jsontext.Value(`"2031-03-01T00:00:00Z"`), "endAt": jsontext.Value(`"2031-04-01T00:00:00Z"`),
		"isActive": jsontext.Value("true"), "isBooked": jsontext.Value("false"),
	}
	slot := Read(content)
	if slot.End.Sub(slot.Start) != maxLength || len(Check(content)) > 0 {
		t.Fatal("this is not the longest slot")
	}
	condition, ok := ends(slot.End.UnixMicro(), store.TheEnd).(store.PeriodIs)
	if !ok || !condition.Matches(store.Period{From: slot.Start.UnixMicro(), Until: slot.End.UnixMicro()}) {
		t.Errorf("the longest slot is not found: %+v", condition)
	}
}
