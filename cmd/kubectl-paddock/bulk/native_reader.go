package bulk

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// nativeReader reads the pages of a pass over a site. It requests the next page as soon as it knows
// where that page begins, so the site reads records from its storage while a page is sent.
type nativeReader struct {
	site  *siteapi.Client
	since string
	// group runs the requests. They end with the context that read gets, which must be canceled if read
	// fails.
	group *errgroup.Group
}

// read calls handle with each page from after on, in their order. At most two pages are requested or
// held in memory at a time.
func (r *nativeReader) read(ctx context.Context, after string, handle func(siteapi.NativePage) error) error {
	current := r.request(ctx, after)
	for {
		var ahead *nativeRequest
		select {
		case next := <-current.next:
			if next != "" {
				ahead = r.request(ctx, next)
			}
		case <-current.done:
		}
		<-current.done
		page, err := current.page, current.err
		if err != nil {
			return err
		}
		// A response that broke off was requested again, and may end with another record.
		if ahead != nil && ahead.after != page.Next {
			ahead.cancel()
			ahead = nil
		}
		if ahead == nil && page.Next != "" {
			ahead = r.request(ctx, page.Next)
		}
		current.page = siteapi.NativePage{}
		if err := handle(page); err != nil || page.Next == "" {
			return err
		}
		current = ahead
	}
}

// nativeRequest is a request for the page after a record.
type nativeRequest struct {
	after  string
	cancel context.CancelFunc
	// next gets the Next of the page when the site first announces it, before the page is complete.
	next chan string
	// page and err are set when done is closed.
	done chan struct{}
	page siteapi.NativePage
	err  error
}

func (r *nativeReader) request(ctx context.Context, after string) *nativeRequest {
	ctx, cancel := context.WithCancel(ctx)
	request := &nativeRequest{after: after, cancel: cancel, next: make(chan string, 1), done: make(chan struct{})}
	r.group.Go(func() error {
		defer close(request.done)
		defer cancel()
		request.page, request.err = r.site.ExportNative(ctx, after, r.since, func(next string) {
			select {
			case request.next <- next:
			default: // a repeated request announced it: read compares it with the Next of the page
			}
		})
		return nil
	})
	return request
}
