package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// bundle is what of a searchset or a history is looked at.
type bundle struct {
	Total int
	Link  []struct{ Relation, URL string }
	Entry []struct {
		Resource json.RawMessage
		Request  struct{ Method string }
		Response struct {
			Location     string
			LastModified time.Time
		}
	}
}

// pages reads a bundle with all that follow it, always from this server, whatever
// address links start with. It returns none when there is no such record.
func (c *client) pages(ctx context.Context, address string) ([]bundle, error) {
	var all []bundle
	for address != "" {
		got, err := c.read(ctx, address)
		if err != nil {
			return nil, err
		}
		if got.status == http.StatusNotFound {
			return nil, nil
		}
		var page bundle
		if err := json.Unmarshal(got.body, &page); err != nil {
			return nil, fmt.Errorf("read %s: %w", address, err)
		}
		all = append(all, page)
		address = ""
		for _, link := range page.Link {
			if link.Relation != "next" {
				continue
			}
			next, err := url.Parse(link.URL)
			if err != nil {
				return nil, err
			}
			address = c.server + next.RequestURI()
		}
	}
	return all, nil
}

// read asks until the server, which may be on its feet again for a moment only,
// can tell.
func (c *client) read(ctx context.Context, address string) (answer, error) {
	var got answer
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got = c.do(ctx, http.MethodGet, address, fhirJSON, nil, nil)
		return got.status == http.StatusOK || got.status == http.StatusNotFound, nil
	})
	if err != nil {
		return got, fmt.Errorf("read %s: %w: the last answer is %s: %s", address, err, got.said(), got.body)
	}
	return got, nil
}

// history reads all versions of a record.
func (c *client) history(ctx context.Context, id string) (history.Reading, error) {
	reading := history.Reading{Record: id, By: c.server, Final: true, Start: clock()}
	pages, err := c.pages(ctx, c.url(id, "_history")+"?_count=15")
	if err != nil {
		return reading, err
	}
	reading.End = clock()
	for _, page := range pages {
		for _, entry := range page.Entry {
			v := history.Version{Deleted: true, Updated: entry.Response.LastModified}
			if entry.Request.Method != http.MethodDelete {
				_, v = c.kind.version(entry.Resource)
			}
			number, err := strconv.ParseInt(path.Base(entry.Response.Location), 10, 64)
			switch {
			case err != nil:
				return reading, fmt.Errorf("history of %s: location %q: %w", id, entry.Response.Location, err)
			case v.Number != 0 && v.Number != number:
				v.Damage = fmt.Sprintf("its location says version %d", number)
			}
			v.Number = number
			reading.Versions = append(reading.Versions, v)
		}
	}
	if len(pages) > 0 && pages[0].Total != len(reading.Versions) {
		return reading, fmt.Errorf("history of %s: total is %d, there are %d entries", id, pages[0].Total, len(reading.Versions))
	}
	slices.Reverse(reading.Versions)
	return reading, nil
}

// search finds all live records of the kind.
func (c *client) search(ctx context.Context) (history.Search, error) {
	found := history.Search{By: c.server, Found: map[string]history.Version{}}
	address := c.url() + "?_count=500&_sort=_id"
	if c.kind.mark != "" {
		address += "&identifier=" + markSystem + "%7C" + c.kind.mark
	}
	pages, err := c.pages(ctx, address)
	if err != nil {
		return found, err
	}
	for _, page := range pages {
		for _, entry := range page.Entry {
			id, v := c.kind.version(entry.Resource)
			if _, again := found.Found[id]; again {
				return found, fmt.Errorf("search at %s: %s is there twice", c.server, id)
			}
			found.Found[id] = v
		}
	}
	return found, nil
}
