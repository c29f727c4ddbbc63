package webhook_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

func TestNumbersInExtensions(t *testing.T) {
	for number, kept := range map[string]bool{
		"0": true, "-0": true, "1": true, "1.0": true, "1.50": true, "100": true, "1e2": true, "1E+2": true, "-1.5e-3": true, "0.1": true, "0.30000000000000004": true,
		"9007199254740993": true, "9223372036854775807": true, "-9223372036854775808": true, "1e308": true, "5e-324": true,
		"9223372036854775808": false, "9223372036854775809": false, "12345678901234567890": false, "0.1234567890123456789": false, "1e309": false, "1e-400": false, "1.00000000000000000001": false,
		"1e99999999999999999999": false, "1e-99999999999999999999": false, "0e99999999999999999999": true,
	} {
		_, _, err := webhook.EventFields.Create(schema.Object{
			{Name: "eventType", Value: jsontext.Value(`"user.created"`)},
			{Name: "isEnabled", Value: jsontext.Value("true")},
			{Name: "extensions", Value: jsontext.Value(`{"a":["` + strings.Repeat("1", 30) + `",` + number + `]}`)},
		}, schema.Identity{})
		if (err == nil) != kept {
			t.Errorf("%s: %v, want kept %t", number, err, kept)
		}
	}
}

// TestPages compares pages with a naive reading of all parameters.
func TestPages(t *testing.T) {
	begin := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []webhook.Resource
	for i := range 23 {
		all = append(all, webhook.Resource{
			ID:      fmt.Sprintf("%02d", i*7%23),
			Created: begin.Add(time.Duration(i/5) * time.Second), Updated: begin.Add(time.Duration(i*5%23) * time.Second),
			Content: schema.Content{
				"description": jsontext.Value([]string{`"b"`, `"A"`, `""`}[i%3]), "eventType": jsontext.Value(`"user.created"`), "isEnabled": jsontext.Value([]string{"true", "false"}[i%2]),
			},
		})
	}
	for _, field := range []string{"", "createdAt", "updatedAt", "description"} {
		for _, order := range []string{"asc", "desc"} {
			for _, size := range []int{1, 10, 22, 23, 100} {
				var ids []string
				for page := range 25 {
					query := url.Values{"page": {fmt.Sprint(page)}, "pageSize": {fmt.Sprint(size)}, "sortOrder": {order}, "isEnabled": {"true"}}
					if field != "" {
						query.Set("sortBy", field)
					}
					asked, err := list.Parse(query, webhook.EventLists)
					if err != nil {
						t.Fatal(err)
					}
					found, total := webhook.Page(all, asked)
					if total != 12 || len(found) > size || page*size < 12 && len(found) != min(size, 12-page*size) {
						t.Fatalf("%s: %d of %d", query.Encode(), len(found), total)
					}
					for _, each := range found {
						ids = append(ids, each.ID)
					}
				}
				if want := naive(all, field, order); !slices.Equal(ids, want) {
					t.Errorf("by %s %s: %v, want %v", field, order, ids, want)
				}
			}
		}
	}
}

// naive are the ids of the enabled resources in an order, by keys that are texts.
func naive(all []webhook.Resource, field, order string) []string {
	var keys []string
	for _, r := range all {
		if string(r.Content["isEnabled"]) != "true" {
			continue
		}
		key := map[string]string{
			"": schema.Stamp(r.Created), "createdAt": schema.Stamp(r.Created), "updatedAt": schema.Stamp(r.Updated),
			"description": strings.ToLower(schema.String(r.Content["description"])),
		}[field]
		keys = append(keys, key+"\x00"+r.ID)
	}
	slices.Sort(keys)
	if order == "desc" {
		slices.Reverse(keys)
	}
	for i, key := range keys {
		_, keys[i], _ = strings.Cut(key, "\x00")
	}
	return keys
}
