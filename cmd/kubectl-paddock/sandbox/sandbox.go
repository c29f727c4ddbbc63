// Package sandbox resets a site to the demo clinic, by requests that any client may send.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/clinic"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

const (
	// pageSize is the number of records that are listed at once.
	pageSize = 500
	// batchSize is the number of slots that are deleted at once. It is less than the AHDS API accepts, so that a
	// Site could have a lower limit.
	batchSize = 100
)

// Result counts what a reset did.
type Result struct {
	// Deleted is the number of deleted records, slots, event groups and calendars.
	Deleted int
	// Loaded is the number of FHIR records of the demo clinic that were created. Slots are not
	// counted.
	Loaded int
}

// Reset deletes the records, slots, event groups and calendars of a site that the caller can see, and
// loads the demo clinic with the slots of the days around now. An interrupted Reset can be repeated.
// Webhooks and webhook events stay. After an error, the Result counts what was done before. Errors:
// *siteapi.Error, but not for slots that the site refuses to delete.
func Reset(ctx context.Context, api *siteapi.Client, now time.Time, zone *time.Location) (Result, error) {
	var result Result
	for _, remove := range []func(context.Context, *siteapi.Client) (int, error){removeSlots, removeGroups, removeFeeds, removeRecords} {
		n, err := remove(ctx, api)
		result.Deleted += n
		if err != nil {
			return result, err
		}
	}
	if err := clinic.Load(ctx, api.Send); err != nil {
		return result, err
	}
	result.Loaded = len(clinic.Records())
	return result, clinic.LoadSlots(ctx, api.Send, now, zone)
}

// removeRecords deletes all FHIR records, type by type, the types that refer to other types first. A
// site that enforces references refuses to delete a record while another record refers to it. The
// types are therefore visited again until no record is left, or no record can be deleted.
func removeRecords(ctx context.Context, api *siteapi.Client) (total int, err error) {
	for {
		deleted, refused, err := removeOnce(ctx, api)
		total += deleted
		if err != nil || refused == nil {
			return total, err
		}
		if deleted == 0 {
			return total, fmt.Errorf("the site refuses to delete the remaining records: %w", refused)
		}
	}
}

// removeOnce deletes the records of each type once. refused is the last refusal because of a
// reference.
func removeOnce(ctx context.Context, api *siteapi.Client) (deleted int, refused, err error) {
	for _, kind := range slices.Backward(clinic.Types()) {
		ids, err := list(ctx, api, kind)
		if err != nil {
			return deleted, refused, err
		}
		for _, id := range ids {
			_, err := api.Send(ctx, http.MethodDelete, "/fhir/"+kind+"/"+id, nil)
			var answer *siteapi.Error
			switch {
			case errors.As(err, &answer) && answer.Status == http.StatusConflict:
				refused = err
			case err != nil:
				return deleted, refused, fmt.Errorf("delete %s/%s: %w", kind, id, err)
			default:
				deleted++
			}
		}
	}
	return deleted, refused, nil
}

// list returns the ids of all records of a type.
func list(ctx context.Context, api *siteapi.Client, kind string) (ids []string, err error) {
	query := fmt.Sprintf("_elements=id&_count=%d&_sort=_id", pageSize)
	for query != "" {
		text, err := api.Send(ctx, http.MethodGet, "/fhir/"+kind+"?"+query, nil)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		var bundle struct {
			Link  []struct{ Relation, URL string }
			Entry []struct{ Resource struct{ ID string } }
		}
		if err := json.Unmarshal(text, &bundle); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		for _, entry := range bundle.Entry {
			ids = append(ids, entry.Resource.ID)
		}
		query = ""
		for _, link := range bundle.Link {
			if link.Relation == "next" {
				_, query, _ = strings.Cut(link.URL, "?") // the token is sent only to the site
			}
		}
	}
	return ids, nil
}

func removeSlots(ctx context.Context, api *siteapi.Client) (deleted int, err error) {
	slots, err := siteapi.List[slot](ctx, api, "availability-slot", nil)
	if err != nil {
		return 0, fmt.Errorf("list slots: %w", err)
	}
	for batch := range slices.Chunk(slots, batchSize) {
		n, err := removeBatch(ctx, api, batch)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

type slot struct {
	ID string `json:"availabilitySlotId"`
}

// removeBatch deletes slots by one request. The site deletes or refuses each slot independently of the
// other slots. Slots that do not exist any more are not counted.
func removeBatch(ctx context.Context, api *siteapi.Client, slots []slot) (deleted int, err error) {
	deletions := make([]map[string]string, len(slots))
	for i, slot := range slots {
		deletions[i] = map[string]string{"action": "delete", "availabilitySlotId": slot.ID}
	}
	var answer struct {
		Data []struct {
			Status  int
			Problem struct{ Code, Detail string }
		}
	}
	if err := api.AHDS(ctx, http.MethodPost, "availability-slot/batch", nil, deletions, &answer); err != nil {
		return 0, fmt.Errorf("delete slots: %w", err)
	}
	if len(answer.Data) != len(slots) {
		return 0, fmt.Errorf("delete slots: the response has the results of %d slots, want %d", len(answer.Data), len(slots))
	}
	var refused []error
	for i, result := range answer.Data {
		switch {
		case result.Status < http.StatusMultipleChoices:
			deleted++
		case result.Status != http.StatusNotFound && result.Status != http.StatusGone:
			refused = append(refused, fmt.Errorf("delete slot %s: status %d (%s): %s", slots[i].ID, result.Status, result.Problem.Code, result.Problem.Detail))
		}
	}
	return deleted, errors.Join(refused...)
}

func removeGroups(ctx context.Context, api *siteapi.Client) (int, error) {
	groups, err := siteapi.List[struct {
		ID string `json:"eventgroupId"`
	}](ctx, api, "eventgroup", nil)
	for i, group := range groups {
		if err := api.AHDS(ctx, http.MethodDelete, "eventgroup/"+group.ID, nil, nil, nil); err != nil {
			return i, fmt.Errorf("delete event group %s: %w", group.ID, err)
		}
	}
	return len(groups), err
}

func removeFeeds(ctx context.Context, api *siteapi.Client) (int, error) {
	feeds, err := siteapi.List[struct {
		ID string `json:"availabilitySlotFeedId"`
	}](ctx, api, "availability-slot-feed", nil)
	for i, feed := range feeds {
		if err := api.AHDS(ctx, http.MethodDelete, "availability-slot-feed/"+feed.ID, nil, nil, nil); err != nil {
			return i, fmt.Errorf("delete calendar %s: %w", feed.ID, err)
		}
	}
	return len(feeds), err
}
