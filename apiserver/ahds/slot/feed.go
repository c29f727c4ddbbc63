package slot

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// FeedType is the type of the records of feeds: permissions to read the slots of one
// resource as a calendar.
const FeedType = "AvailabilitySlotFeed"

// FeedIDField is the field with the id of a feed.
const FeedIDField = "availabilitySlotFeedId"

// FeedFields are those of a feed.
var FeedFields = document.Fields{
	{Name: "resourceId", Check: document.UUID(), Required: true},
	{Name: "description", Check: document.Text(0, maxWord), Default: `""`},
	{Name: "url", Served: true},
	{Name: "createdAt", Served: true},
	{Name: "updatedAt", Served: true},
}

// FeedEntries are the searchable values of a feed.
func FeedEntries(content document.Content) []store.Entry {
	return []store.Entry{{Param: paramResource, Value: store.Token{Code: strings.ToLower(content.Text("resourceId"))}}}
}

// FeedLists say what a list of feeds can be asked.
var FeedLists = list.Options[store.Condition]{
	SortBy:  []string{"createdAt", "updatedAt"},
	Filters: []list.Filter[store.Condition]{{Name: "resourceId", Parse: id(paramResource)}},
}

// FeedSorts are the orders that a list of feeds can have.
var FeedSorts = map[string]store.Sort{
	"":          {Field: store.SortCreated},
	"createdAt": {Field: store.SortCreated},
	"updatedAt": {Field: store.SortUpdated},
}
