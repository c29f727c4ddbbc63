// Package ahds serves the animal health data store API of every site at the contract's
// paths. Its handlers translate between HTTP and the storage contract, or the custom
// resources of a site; they know no storage engine and no Kubernetes client. What slots,
// event groups and webhooks are is in the packages below it.
package ahds

import (
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// Group is the API group in whose terms access to the records of this API is decided.
const Group = "ahds.paddock.health"

// Resources are those of the group, in the terms of Kubernetes RBAC.
var Resources = []string{slots.resource, eventGroups.resource, feedResource}

const (
	// defaultMaxBodySize is the most bytes of a body where a site does not say.
	defaultMaxBodySize = 4 << 20
	// requestTimeout bounds how long a request may take.
	requestTimeout = 30 * time.Second
)

// Site is what the facade needs to know of one site.
type Site struct {
	// ID is the siteID as in the path.
	ID string
	// BaseURL is the public address, without a trailing slash, such as
	// https://host/site/1042/ahds/v1.
	BaseURL string
	Access  access.Site
	// Store is nil while the storage is not open.
	Store         store.Store
	WebhookEvents ResourceStore
	Webhooks      WebhookStore
	// MaxBodySize is the most bytes of a body, inflated; 0 means 4 MiB.
	MaxBodySize int64
}

// keeps reports whether the resources of a group can be reached; empty: the records.
func (s Site) keeps(group string) bool {
	if group == "" {
		return s.Store != nil
	}
	return s.WebhookEvents != nil && s.Webhooks != nil
}

// Config is what the facade is made of.
type Config struct {
	// Admit finds the site and authenticates the caller. Errors:
	// *access.TokenError, access.ErrSiteHidden, access.ErrUnavailable.
	Admit func(r *http.Request, siteID string) (Site, access.Caller, error)
	// Find finds the site of a request that has its token in its query string: that for
	// a calendar. Errors: access.ErrSiteHidden, access.ErrUnavailable.
	Find       func(siteID string) (Site, error)
	Authorizer access.Authorizer
	// TokenKey makes the tokens of holds: at least 32 bytes that all replicas share.
	TokenKey []byte
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// minTokenKey is how many bytes a secret key has at least.
const minTokenKey = 32

// New makes the handler of /site/{siteId}/ahds/v1 and everything under it.
func New(config Config) (http.Handler, error) {
	if config.Admit == nil || config.Find == nil || config.Authorizer == nil || len(config.TokenKey) < minTokenKey {
		return nil, errors.New("make the AHDS facade: it needs Admit, Find, Authorizer and a TokenKey of 32 bytes")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed)) // answers are made for one client each
	if err != nil {
		return nil, fmt.Errorf("make the AHDS facade: %w", err)
	}
	h := &handler{Config: config}
	return compress(web.Identify(web.Recover(h.Log, h.failEarly, h.routes()))), nil
}

// handler serves all sites.
type handler struct {
	Config
}

// failEarly answers a request of which nothing is known yet.
func (h *handler) failEarly(w http.ResponseWriter, r *http.Request, err error) {
	h.fail(w, &request{Request: r}, err)
}
