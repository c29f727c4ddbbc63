// Package fhir serves the FHIR R4 facade of every site at the contract's paths. Its handlers
// translate between HTTP and the storage contract. They depend on no storage engine and no
// Kubernetes client.
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
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/limits"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// Group is the API group under which access to FHIR resources is authorized.
const Group = r4.Group

const (
	// defaultMaxBundleEntries is the maximum number of entries of a batch or transaction at a Site
	// that does not set limits.maxBundleEntries. A larger Bundle is answered with 413.
	defaultMaxBundleEntries = 1000
	// requestTimeout is how long a request may take if its interaction has no timeout of its own. A
	// request that takes longer is answered with 503.
	requestTimeout = 30 * time.Second
)

// Endpoint is the FHIR API of one Site for the caller of one request.
type Endpoint struct {
	settings.Settings
	// BaseURL is the public address of this API without a trailing slash, such as
	// https://host/site/1042/fhir.
	BaseURL string
	// OtherURLs are further addresses of this API. A reference below one of them refers to the same
	// record as a reference below BaseURL.
	OtherURLs []string
	// PagesURL is the base of the links to pages: an address of the site that the caller can reach.
	// If it is empty, BaseURL is used.
	PagesURL string
	// Store is the storage of the site, restricted to the records that the caller may see. It is
	// nil while the storage is not open. An Endpoint that Find returns has no caller, so only
	// Store.Atomic is called.
	Store store.Restricted
	// AuditLog is the audit log of the site. It is nil while the storage is not open.
	AuditLog AuditLog
	// Limiter limits concurrent searches and histories. If it is nil, there is no limit.
	Limiter *limits.SiteLimiter
	// Issuer is the OAuth 2 server that metadata and the SMART configuration describe. It is nil if
	// only the cluster issues tokens.
	Issuer *Issuer
	// Consoles are the clients with which the console signs people in.
	Consoles []ConsoleClient
}

// Config has the dependencies of the facade. Admit, Find, Authorizer and TokenKeys are required.
type Config struct {
	// Admit finds the site and authenticates the caller. Errors: *access.TokenError,
	// *access.HeaderError, access.ErrSiteHidden, access.ErrUnavailable, *limits.ExceededError.
	Admit func(r *http.Request, siteID string) (Endpoint, access.Caller, error)
	// Find finds the site of a request that needs no token unless the site is hidden, such as one for
	// metadata, which clients read before they log in. Errors: access.ErrSiteHidden,
	// access.ErrUnavailable, *limits.ExceededError.
	Find func(r *http.Request, siteID string) (Endpoint, error)
	// Authorizer decides whether the caller has the right to an interaction.
	Authorizer access.Authorizer
	// Audit records requests in audit logs. If it is nil, requests are not recorded.
	Audit *audit.Auditor
	// TokenKeys are the keys of page tokens, with 32 bytes each. All replicas must share them.
	TokenKeys keyring.Source
	// ErrorPages is the address of the pages that explain the codes of errors. This address
	// is also the system of the codes in OperationOutcomes.
	ErrorPages errorcode.Pages
	// Version is the software version in the CapabilityStatement. If empty, the CapabilityStatement has
	// no version.
	Version string
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// New returns the handler of /site/{siteId}/fhir and of all paths below it.
func New(config Config) (http.Handler, error) {
	if config.Admit == nil || config.Find == nil || config.Authorizer == nil {
		return nil, errors.New("make the FHIR facade: Config must have Admit, Find and Authorizer")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	tokens, err := search.NewTokens(config.TokenKeys)
	if err != nil {
		return nil, fmt.Errorf("make the FHIR facade: %w", err)
	}
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed)) // each response is compressed for one client only
	if err != nil {
		return nil, fmt.Errorf("make the FHIR facade: %w", err)
	}
	h := &handler{Config: config, tokens: tokens, started: config.Now()}
	h.router = h.routes()
	return compress(h.middleware()), nil
}

type handler struct {
	Config
	tokens  search.Tokens
	started time.Time
	// router finds the interaction of a request and of an entry of a Bundle.
	router router
}

// middleware returns the router wrapped in request ids, recovery from panics and the audit log.
func (h *handler) middleware() http.Handler {
	return web.Identify(web.Recover(h.Log, func(w http.ResponseWriter, r *http.Request, err error) {
		h.fail(w, &request{Request: r, dialect: contractDialect, errorPages: h.ErrorPages}, err)
	}, h.Audit.Handler("fhir", h.router, h.failUnserved)))
}
