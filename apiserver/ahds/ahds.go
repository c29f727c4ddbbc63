// Package ahds serves the animal health data store (AHDS) API of every site. Comments cite a
// section of the API's specification as in "Contract 4.2". The handlers translate between HTTP and
// package store or the custom resources of a site. They use no storage engine and no Kubernetes
// client directly. The subpackages define slots, events, event groups and webhooks.
package ahds

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/events"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/traffic"
	"github.com/paddock-health/paddock/apiserver/web"
)

// Group is the API group of the records of this API in access decisions.
const Group = "ahds.paddock.health"

// Resources are the Kubernetes RBAC resources of Group.
var Resources = []string{slots.resource, eventGroups.resource, feedResource, eventResource, eventTypeResource}

// requestTimeout is the time limit of a request. A longer request fails with 503. Streams of
// deliveries have no time limit.
const requestTimeout = 30 * time.Second

// DataStore is a Site as the caller of a request may use it through the AHDS API.
type DataStore struct {
	settings.Settings
	// BaseURL is the public address, without a trailing slash, such as
	// https://host/site/1042/ahds/v1.
	BaseURL string
	// Audit is the audit log of the site.
	Audit audit.Sink
	// Store contains the records that the caller may see. It is nil while the storage is not open.
	Store store.Restricted
	// WebhookEvents and Webhooks store the custom resources of the site. If one of them or Privileged
	// is nil, operations of ResourceGroup fail with 503.
	WebhookEvents ResourceStore
	Webhooks      WebhookStore
	// Deliveries is the log of deliveries to webhooks. It is nil while the storage is not open.
	Deliveries delivery.Log
	// Tail follows Deliveries for streams. It is nil while the storage is not open.
	Tail delivery.Tail
	// Privileged returns an error if the caller may not see records that privacy rules hide.
	// Errors: *access.ForbiddenError, access.ErrUnavailable.
	Privileged func(ctx context.Context) error
	// Events creates the events that clients publish. If nil, requests to publish events fail.
	Events *events.Source
	// Limiter limits concurrent searches. If nil, there is no limit.
	Limiter *limits.SiteLimiter
}

// isOpen reports whether the resources of an API group are available. The empty group is that of
// records.
func (s DataStore) isOpen(group string) bool {
	if group == "" {
		return s.Store != nil
	}
	return s.WebhookEvents != nil && s.Webhooks != nil && s.Privileged != nil
}

// Config is the configuration of the facade. Admit, Find, Authorizer, HoldKeys, FeedKeys and
// Cursors are required.
type Config struct {
	// Admit finds the site and authenticates the caller. Errors: *access.TokenError,
	// *access.HeaderError, access.ErrSiteHidden, access.ErrUnavailable, *limits.ExceededError.
	Admit func(r *http.Request, siteID string) (DataStore, access.Caller, error)
	// Find finds the site of a calendar request, whose token is in the query string. Find also
	// returns hidden sites, because the token grants access. Errors: access.ErrSiteHidden if the
	// site does not exist, access.ErrUnavailable, *limits.ExceededError.
	Find       func(r *http.Request, siteID string) (DataStore, error)
	Authorizer access.Authorizer
	// Audit records requests. If nil, requests are not recorded.
	Audit *audit.Auditor
	// HoldKeys sign the tokens of holds, FeedKeys the tokens of calendar feeds. Each key has 32
	// bytes. All replicas share the keys.
	HoldKeys, FeedKeys keyring.Source
	// Cursors seals the cursors of lists of changes.
	Cursors Cursors
	// ErrorPages is the address of the pages that explain the codes of errors. The type of a
	// problem is the page of its code.
	ErrorPages errorcode.Pages
	// Traffic returns the counts of this server's requests to a site. If nil, the response of
	// site-usage has no member requests.
	Traffic func(siteID string) traffic.Report
	// Streams configures the event streams of webhook deliveries. A zero field has its default.
	Streams Streams
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// New returns the handler of /site/{siteId}/ahds/v1 and all paths below it. It returns an error if a
// required field of config is nil.
func New(config Config) (http.Handler, error) {
	if config.Admit == nil || config.Find == nil || config.Authorizer == nil || config.HoldKeys == nil || config.FeedKeys == nil || config.Cursors == nil {
		return nil, errors.New("create the AHDS facade: Admit, Find, Authorizer, HoldKeys, FeedKeys and Cursors are required")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Streams = config.Streams.withDefaults()
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed)) // each response serves one client
	if err != nil {
		return nil, fmt.Errorf("create the AHDS facade: %w", err)
	}
	h := &handler{Config: config, required: requiredRights()}
	return compress(web.Identify(web.Recover(h.Log, h.failEarly, h.Audit.Handler("ahds", h.routes(), h.failEarly)))), nil
}

type handler struct {
	Config
	streams streamCount
	// required are the rights that operations require.
	required []access.Action
	// segments are the first segments of all paths.
	segments []string
}

// failEarly responds with an error that occurs outside of an operation: a panic, or an audit entry
// that cannot be stored. The path of the request may not have been parsed.
func (h *handler) failEarly(w http.ResponseWriter, r *http.Request, err error) {
	h.fail(w, &request{Request: r}, err)
}
