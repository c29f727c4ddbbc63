package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/hack/dev/localissuer"
	"github.com/paddock-health/paddock/hack/dev/module"
)

// The suite verifies tokens of real issuers, which run as processes of their own.
func TestIssuers(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Tokens of issuers")
}

// clinic is the issuer of the site, stranger one that the site does not know.
var clinic, stranger *localissuer.Issuer

var _ = BeforeSuite(func(ctx SpecContext) {
	clinic, stranger = startIssuer(ctx), startIssuer(ctx)
}, NodeTimeout(time.Minute))

func startIssuer(ctx context.Context) *localissuer.Issuer {
	GinkgoHelper()
	bin, err := module.Bin()
	Expect(err).NotTo(HaveOccurred())
	issuer, err := localissuer.Start(ctx, filepath.Join(bin, "issuer"), GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred(), "the program comes from `make issuer`")
	DeferCleanup(issuer.Stop)
	return issuer
}

var (
	oak     = Owner{ID: "oak", Namespace: "clinic"}
	dialer  = egress.NewDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
	options = Options{Dial: dialer.DialContext}
	// closedDialer reaches public addresses alone.
	closedDialer = egress.NewDialer(nil)
)

// settings describe an issuer whose every claim is mapped.
func settings(issuer *localissuer.Issuer) []Issuer {
	return []Issuer{{
		Name: "clinic", Keys: discovery.Issuer{URL: issuer.URL, CABundle: issuer.CA},
		Audiences: []string{"oak"}, Username: "sub", Groups: "groups", Site: "site",
	}}
}

// open opens the issuers of a site until the end of the spec.
func open(issuers []Issuer, o Options) *Issuers {
	opened := Open(context.Background(), oak, issuers, nil, o)
	DeferCleanup(opened.Close)
	return opened
}

// clock is a clock that stands still.
type clock struct{ seconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.seconds.Store(time.Now().Unix())
	return c
}

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func (c *clock) advance(by time.Duration) { c.seconds.Add(int64(by.Seconds())) }

// goodClaims are those of a good token.
func goodClaims() map[string]any { return clinic.Claims("oak", "oak") }

func sign(ctx context.Context, issuer *localissuer.Issuer, claims map[string]any) string {
	GinkgoHelper()
	token, err := issuer.SignClaims(ctx, claims)
	Expect(err).NotTo(HaveOccurred())
	return token
}

func fetches(ctx context.Context, issuer *localissuer.Issuer) int {
	GinkgoHelper()
	n, err := issuer.Fetches(ctx)
	Expect(err).NotTo(HaveOccurred())
	return n
}

// authenticate expects that the token names an issuer of the site.
func authenticate(ctx context.Context, issuers *Issuers, token string) (access.Caller, error) {
	GinkgoHelper()
	caller, named, err := issuers.Authenticate(ctx, token)
	Expect(named).To(BeTrue(), "the token names an issuer of the site")
	return caller, err
}

func accept(ctx context.Context, issuers *Issuers, token string) {
	GinkgoHelper()
	_, err := authenticate(ctx, issuers, token)
	Expect(err).NotTo(HaveOccurred())
}

func refuse(ctx context.Context, issuers *Issuers, token, why string) {
	GinkgoHelper()
	_, err := authenticate(ctx, issuers, token)
	var refused *access.TokenError
	Expect(errors.As(err, &refused)).To(BeTrue(), "got %v", err)
	Expect(refused.Code).To(Equal("invalid_token"))
	Expect(refused.Description).To(ContainSubstring(why))
}

func marshal(claims map[string]any) []byte {
	GinkgoHelper()
	content, err := json.Marshal(claims)
	Expect(err).NotTo(HaveOccurred())
	return content
}

func encodeHeader(header string) string { return base64.RawURLEncoding.EncodeToString([]byte(header)) }
