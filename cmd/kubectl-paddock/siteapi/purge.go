package siteapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Purged is the receipt of a $purge. The receipt has counts and names no record.
type Purged struct {
	Time string `json:"time"`
	// Records is the number of purged records by type. Shared is the number of records of the
	// compartment that were not purged, because they are also about other subjects, such as a Group
	// with further members.
	Records map[string]int `json:"records"`
	Shared  int            `json:"shared"`
	// Outside describes, for people, which copies of the data the purge does not reach, such as
	// backups.
	Outside string `json:"outside"`
}

// Purge removes a record with its history, events and deliveries. For a Patient, withCompartment
// selects whether the records of its compartment are removed as well; for other types it has no
// effect. Errors: *Error.
func (c *Client) Purge(ctx context.Context, recordType, id string, withCompartment bool) (Purged, error) {
	query := url.Values{}
	if !withCompartment { // whatever the type, because sites accept several spellings of it
		query.Set("compartment", "false")
	}
	text, err := c.do(ctx, http.MethodPost, "/fhir/"+url.PathEscape(recordType)+"/"+url.PathEscape(id)+"/$purge", query, nil, "application/fhir+json")
	if err != nil {
		return Purged{}, err
	}
	var receipt struct {
		Parameter []struct {
			Name         string
			ValueInstant string
			ValueInteger int
			ValueString  string
			Part         []struct {
				Name         string
				ValueCode    string
				ValueInteger int
			}
		}
	}
	if err := json.Unmarshal(text, &receipt); err != nil {
		return Purged{}, fmt.Errorf("decode the receipt of the purge of %s/%s: %w", recordType, id, err)
	}
	purged := Purged{Records: map[string]int{}}
	for _, p := range receipt.Parameter {
		switch p.Name {
		case "time":
			purged.Time = p.ValueInstant
		case "shared":
			purged.Shared = p.ValueInteger
		case "outside":
			purged.Outside = p.ValueString
		case "purged":
			typeName, count := "", 0
			for _, part := range p.Part {
				switch part.Name {
				case "type":
					typeName = part.ValueCode
				case "count":
					count = part.ValueInteger
				}
			}
			purged.Records[typeName] += count
		}
	}
	return purged, nil
}
