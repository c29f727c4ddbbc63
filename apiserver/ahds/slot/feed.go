package slot

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// FeedType is the store type of feeds. A feed is a permission to read the slots of one resource as
// a calendar.
const FeedType = "AvailabilitySlotFeed"

// FeedIDField is the name of a feed's id field.
const FeedIDField = "availabilitySlotFeedId"

// FeedFields are the fields of a feed.
var FeedFields = schema.Fields{
	{Name: "resourceId", Check: schema.UUID(), Required: true},
	{Name: "description", Check: schema.Text(0, maxWord), Default: `""`},
	{Name: "url", Check: schema.URI(), Served: true},
	{Name: "createdAt", Check: schema.Instant(), Served: true},
	{Name: "updatedAt", Check: schema.Instant(), Served: true},
}

// FeedValues returns the searchable values of a feed.
func FeedValues(content schema.Content) []store.IndexValue {
	return []store.IndexValue{{Param: paramResource, Value: store.Token{Code: strings.ToLower(content.Text("resourceId"))}}}
}

// FeedLists are the parameters of a list of feeds.
var FeedLists = list.Options[store.Condition]{
	SortBy:  []string{"createdAt", "updatedAt"},
	Filters: []list.Filter[store.Condition]{{Name: "resourceId", Parse: id(paramResource), Schema: list.UUIDSchema}},
}

// FeedSorts are the sort orders of a list of feeds, by the value of sortBy, and the order without
// sortBy under "".
var FeedSorts = map[string]store.Sort{
	"":          {Field: store.SortCreated},
	"createdAt": {Field: store.SortCreated},
	"updatedAt": {Field: store.SortUpdated},
}
