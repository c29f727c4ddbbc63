// Package fhir serves the FHIR R4 facade of every site at the contract's paths.
// Its handlers translate between HTTP and the storage contract; they know no
// storage engine and no Kubernetes client.
package fhir

import (
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// Group is the API group in whose terms access to FHIR resources is decided.
const Group = r4.Group

const (
	// defaultMaxBodySize is the most bytes of a body where a site does not say.
	defaultMaxBodySize = 4 << 20
	// defaultMaxBundleEntries is the most entries of a bundle where a site does not say.
	defaultMaxBundleEntries = 1000
	// requestTimeout bounds how long a request may take.
	requestTimeout = 30 * time.Second
)

// Site is what the facade needs to know of one site.
type Site struct {
	// ID is the siteID as in the path.
	ID string
	// BaseURL is the public address, without a trailing slash, such as
	// https://host/site/1042/fhir.
	BaseURL string
	// OtherURLs are further addresses of it: what refers there refers to the same records.
	OtherURLs []string
	// PagesURL is where links to other pages start, if that is not BaseURL: an address by
	// which this caller reaches the site.
	PagesURL string
	Access   access.Site
	// Store is nil while the storage is not open.
	Store store.Store
	// UpdateCreate lets a PUT create a record under an id of the client's choice.
	UpdateCreate bool
	// EnforceReferences refuses references to records of this site that are not there, and
	// the deletion of what is referred to.
	EnforceReferences bool
	// CORS tells that pages of other origins may use the site; who serves the facade sees to it.
	CORS bool
	// MaxBodySize is the most bytes of a body, inflated; 0 means 4 MiB.
	MaxBodySize int64
	// MaxBundleEntries is the most entries of a batch or transaction; 0 means 1000.
	MaxBundleEntries int
	// MaxIncluded is the most records included beside the matches of a page; 0 means 1000.
	MaxIncluded int
	// Lenient ignores unknown search parameters, where a request does not say otherwise.
	Lenient bool
	// Zone is that of times without one in searches; nil is UTC.
	Zone *time.Location
}

// Config is what the facade is made of.
type Config struct {
	// Admit finds the site and authenticates the caller. Errors:
	// *access.TokenError, access.ErrSiteHidden, access.ErrUnavailable.
	Admit func(r *http.Request, siteID string) (Site, access.Caller, error)
	// Find finds the site of a request that needs no token: one for metadata. That a
	// site exists is no secret to who knows its address: clients ask what it can do
	// before they log in. Error: access.ErrSiteHidden.
	Find       func(siteID string) (Site, error)
	Authorizer access.Authorizer
	// TokenKey seals page tokens: 32 bytes that all replicas share.
	TokenKey []byte
	// Version is that of the program, for metadata.
	Version string
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// New makes the handler of /site/{siteId}/fhir and everything under it.
func New(config Config) (http.Handler, error) {
	if config.Admit == nil || config.Find == nil || config.Authorizer == nil {
		return nil, errors.New("make the FHIR facade: it needs Admit, Find and Authorizer")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	tokens, err := search.NewTokens(config.TokenKey)
	if err != nil {
		return nil, fmt.Errorf("make the FHIR facade: %w", err)
	}
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed)) // answers are made for one client each
	if err != nil {
		return nil, fmt.Errorf("make the FHIR facade: %w", err)
	}
	h := &handler{Config: config, tokens: tokens, started: config.Now()}
	h.router = h.routes()
	return compress(h.guarded()), nil
}

// handler serves all sites.
type handler struct {
	Config
	tokens  search.Tokens
	started time.Time
	// router finds the interaction of a request, and of an entry of a bundle.
	router http.Handler
}

// guarded is the router behind what survives panics and names requests.
func (h *handler) guarded() http.Handler {
	return web.Identify(web.Recover(h.Log, func(w http.ResponseWriter, r *http.Request, err error) {
		h.fail(w, &request{Request: r, dialect: contractDialect}, err)
	}, h.router))
}
