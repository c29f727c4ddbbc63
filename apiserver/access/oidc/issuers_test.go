package oidc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/hack/dev/localissuer"
)

var _ = Describe("A token of an issuer", func() {
	It("identifies its caller, by names of the site's namespace", func(ctx SpecContext) {
		token, err := clinic.Token(ctx, localissuer.Client{ID: "integrator", Secret: "s", Audience: []string{"oak"}, Claims: map[string]any{
			"site": []string{"elm", "oak"}, "groups": []string{"vets", "chiefs"}, "scp": []string{"a", "b"}, "patient": "rex",
		}}, "system/Patient.rs", "openid")
		Expect(err).NotTo(HaveOccurred())
		caller, err := authenticate(ctx, open(settings(clinic), options), token)
		Expect(err).NotTo(HaveOccurred())
		caller.Identity = ""
		Expect(caller).To(Equal(access.Caller{
			Name: "site:clinic:integrator", Groups: []string{"site:clinic:vets", "site:clinic:chiefs"},
			Issuer: "clinic", IssuerGroups: []string{"vets", "chiefs"},
			Scopes: []string{"system/Patient.rs", "openid", "a", "b"}, Patient: "rex",
		}))
	})

	It("has an identity of its own, wherever rights can differ", func(ctx SpecContext) {
		issuers := open(settings(clinic), options)
		identities := map[string]bool{}
		for _, claims := range []map[string]any{
			goodClaims(), localissuer.With(goodClaims(), "sub", "bob"), localissuer.With(goodClaims(), "groups", nil),
			localissuer.With(goodClaims(), "scope", "a b"), localissuer.With(goodClaims(), "scope", "a"), localissuer.With(goodClaims(), "patient", "rex"),
		} {
			caller, err := authenticate(ctx, issuers, sign(ctx, clinic, claims))
			Expect(err).NotTo(HaveOccurred())
			identities[caller.Identity] = true
		}
		Expect(identities).To(HaveLen(6))
	})

	It("may be signed by any of the algorithms, with a key that was published since", func(ctx SpecContext) {
		for _, algorithm := range []jose.SignatureAlgorithm{jose.RS384, jose.PS256, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA} {
			issuer := startIssuer(ctx)
			issuers := open(settings(issuer), options)
			accept(ctx, issuers, sign(ctx, issuer, issuer.Claims("oak", "oak")))
			before := fetches(ctx, issuer)
			_, err := issuer.Rotate(ctx, algorithm)
			Expect(err).NotTo(HaveOccurred())
			accept(ctx, issuers, sign(ctx, issuer, issuer.Claims("oak", "oak")))
			Expect(fetches(ctx, issuer)-before).To(Equal(1), "fetches for %s", algorithm)
		}
	})

	It("counts within 30 s of its times, and no longer", func(ctx SpecContext) {
		c := newClock()
		issuers := open(settings(clinic), Options{Dial: options.Dial, Now: c.now})
		now := c.now().Unix()
		for _, name := range []string{"nbf", "iat"} {
			accept(ctx, issuers, sign(ctx, clinic, localissuer.With(goodClaims(), name, now+30)))
			refuse(ctx, issuers, sign(ctx, clinic, localissuer.With(goodClaims(), name, now+31)), "not valid yet")
		}
		accept(ctx, issuers, sign(ctx, clinic, localissuer.With(goodClaims(), "exp", now-29)))
		refuse(ctx, issuers, sign(ctx, clinic, localissuer.With(goodClaims(), "exp", now-30)), "expired")
	})

	It("is remembered until it expires, and no longer than that", func(ctx SpecContext) {
		c := newClock()
		issuers := open(settings(clinic), Options{Dial: options.Dial, Now: c.now})
		token := sign(ctx, clinic, localissuer.With(goodClaims(), "exp", c.now().Unix()+600))
		accept(ctx, issuers, token)
		c.advance(9 * time.Minute)
		accept(ctx, issuers, token)
		c.advance(2 * time.Minute)
		refuse(ctx, issuers, token, "expired")
	})

	It("is forgotten when the issuers of the Site change", func(ctx SpecContext) {
		first := Open(ctx, oak, settings(clinic), nil, options)
		token := sign(ctx, clinic, goodClaims())
		accept(ctx, first, token)
		Expect(Open(ctx, oak, settings(clinic), first, options)).To(BeIdenticalTo(first), "the same settings")
		changed := settings(clinic)
		changed[0].Audiences = []string{"elm"}
		before := fetches(ctx, clinic)
		second := Open(ctx, oak, changed, first, options)
		refuse(ctx, second, token, "audience")
		accept(ctx, second, sign(ctx, clinic, localissuer.With(goodClaims(), "aud", "elm")))
		Expect(fetches(ctx, clinic)).To(Equal(before), "the keys are from the same place")
		Expect(Open(ctx, oak, nil, second, options)).To(BeNil())
	})

	It("that names another issuer is not looked at", func(ctx SpecContext) {
		issuers := open(settings(clinic), options)
		_, named, err := issuers.Authenticate(ctx, sign(ctx, stranger, stranger.Claims("oak", "oak")))
		Expect(err).NotTo(HaveOccurred())
		Expect(named).To(BeFalse())
		token := sign(ctx, stranger, stranger.Claims("oak", "oak"))
		for range 2 { // parsed, and remembered
			_, named, err = issuers.Authenticate(ctx, token)
			Expect(err).NotTo(HaveOccurred())
			Expect(named).To(BeFalse())
		}
		Expect(issuers.foreign.Keys()).NotTo(BeEmpty())
		Expect(issuers.verified.Keys()).To(BeEmpty(), "what anybody can make up displaces no verified token")
		accept(ctx, Open(ctx, oak, settings(stranger), issuers, options), token) // once the Site has that issuer
		_, named, _ = (*Issuers)(nil).Authenticate(ctx, "any")
		Expect(named).To(BeFalse(), "a Site without issuers")
	})
})

var _ = Describe("Bad tokens", func() {
	It("are all refused, and none causes more than one fetch", func(ctx SpecContext) {
		issuers := open(settings(clinic), options)
		accept(ctx, issuers, sign(ctx, clinic, goodClaims()))
		bad, err := clinic.BadTokens(ctx, goodClaims(), stranger, "paddock.health/clinic/oak")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(bad)).To(BeNumerically(">=", 40))
		first := fetches(ctx, clinic)
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			before := fetches(ctx, clinic)
			caller, named, err := issuers.Authenticate(ctx, bad[name])
			Expect(caller).To(BeZero(), name)
			Expect(fetches(ctx, clinic)-before).To(BeNumerically("<=", 1), name)
			Expect(named).To(Equal(!slices.Contains(localissuer.ForeignTokens, name)), name)
			if !named {
				Expect(err).NotTo(HaveOccurred(), name)
				continue
			}
			var refused *access.TokenError
			Expect(errors.As(err, &refused)).To(BeTrue(), "%s: %v", name, err)
			Expect(refused.Code).To(Equal("invalid_token"), name)
			for _, part := range strings.Split(bad[name], ".") {
				if len(part) > 3 {
					Expect(refused.Description).NotTo(ContainSubstring(part), name)
				}
			}
		}
		Expect(fetches(ctx, clinic)-first).To(BeNumerically("<=", 1), "of all of them")
		AddReportEntry("bad tokens", len(bad))
	}, NodeTimeout(time.Minute))

	It("with a thousand unknown keys cause two fetches", func(ctx SpecContext) {
		issuer := startIssuer(ctx)
		issuers := open(settings(issuer), options)
		good := sign(ctx, issuer, issuer.Claims("oak", "oak"))
		accept(ctx, issuers, good)
		parts := strings.Split(good, ".")
		var group sync.WaitGroup
		for worker := range 10 {
			group.Go(func() {
				defer GinkgoRecover()
				for n := range 100 {
					header := encodeHeader(fmt.Sprintf(`{"alg":"RS256","kid":"unknown-%d-%d"}`, worker, n))
					refuse(ctx, issuers, header+"."+parts[1]+"."+parts[2], "does not publish")
				}
			})
		}
		group.Wait()
		Expect(fetches(ctx, issuer)).To(Equal(2), "at the start, and for the first unknown key")
	}, NodeTimeout(time.Minute))
})

var _ = Describe("Keys", func() {
	It("are replaced when the issuer rotates them, and end when it withdraws them", func(ctx SpecContext) {
		issuer, c := startIssuer(ctx), newClock()
		issuers := open(settings(issuer), Options{Dial: options.Dial, Now: c.now})
		old, oldToo := sign(ctx, issuer, issuer.Claims("oak", "oak")), sign(ctx, issuer, localissuer.With(issuer.Claims("oak", "oak"), "sub", "bob"))
		accept(ctx, issuers, old)
		_, err := issuer.Rotate(ctx, jose.ES256)
		Expect(err).NotTo(HaveOccurred())
		accept(ctx, issuers, sign(ctx, issuer, issuer.Claims("oak", "oak")))
		Expect(fetches(ctx, issuer)).To(Equal(2))
		accept(ctx, issuers, oldToo)
		By("another rotation within the minute waits for the minute to pass")
		_, err = issuer.Rotate(ctx, jose.ES256)
		Expect(err).NotTo(HaveOccurred())
		Expect(issuer.Retire(ctx, "key-1")).To(Succeed())
		newest := sign(ctx, issuer, issuer.Claims("oak", "oak"))
		refuse(ctx, issuers, newest, "does not publish")
		c.advance(time.Minute)
		accept(ctx, issuers, newest)
		refuse(ctx, issuers, signBy(ctx, issuer, "key-1", "carol"), "does not publish")
		Expect(fetches(ctx, issuer)).To(Equal(3))
	}, NodeTimeout(time.Minute))

	It("that are known count while the issuer is down", func(ctx SpecContext) {
		issuer, c := startIssuer(ctx), newClock()
		issuers := open(settings(issuer), Options{Dial: options.Dial, Now: c.now})
		first, second := sign(ctx, issuer, issuer.Claims("oak", "oak")), sign(ctx, issuer, localissuer.With(issuer.Claims("oak", "oak"), "sub", "bob"))
		_, err := issuer.Rotate(ctx, jose.ES256)
		Expect(err).NotTo(HaveOccurred())
		accept(ctx, issuers, first)
		third, err := issuer.Rotate(ctx, jose.EdDSA)
		Expect(err).NotTo(HaveOccurred())
		unknown := signBy(ctx, issuer, third, "carol")
		Expect(issuer.Stop()).To(Succeed())
		accept(ctx, issuers, second)
		refuse(ctx, issuers, unknown, "does not publish")
		By("not known at all, they refuse nobody and let nobody in")
		_, err = authenticate(ctx, open(settings(issuer), options), first)
		Expect(err).To(MatchError(access.ErrUnavailable))
		Expect(issuer.Resume(ctx)).To(Succeed())
		c.advance(time.Minute)
		Eventually(func() error { _, err := authenticate(ctx, issuers, unknown); return err }).
			WithContext(ctx).Should(Succeed())
	}, NodeTimeout(time.Minute))

	It("given inline are not fetched", func(ctx SpecContext) {
		set, err := clinic.Keys(ctx)
		Expect(err).NotTo(HaveOccurred())
		content, err := set.Keys[0].MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		inline := settings(clinic)
		inline[0].Keys.JWKS, inline[0].Keys.CABundle = `{"keys":[`+string(content)+`]}`, ""
		before := fetches(ctx, clinic)
		issuers := open(inline, options)
		accept(ctx, issuers, sign(ctx, clinic, goodClaims()))
		parts := strings.Split(sign(ctx, clinic, goodClaims()), ".")
		refuse(ctx, issuers, encodeHeader(`{"alg":"RS256","kid":"other"}`)+"."+parts[1]+"."+parts[2], "does not publish")
		Expect(fetches(ctx, clinic)).To(Equal(before))
	})

	It("of an issuer in a network that is not allowed are not fetched", func(ctx SpecContext) {
		token, before := sign(ctx, clinic, goodClaims()), fetches(ctx, clinic)
		_, err := authenticate(ctx, open(settings(clinic), Options{Dial: closedDialer.DialContext}), token)
		Expect(err).To(MatchError(access.ErrUnavailable))
		Expect(fetches(ctx, clinic)).To(Equal(before))
	})
})

// signBy signs good claims of a subject with a key that need not be the newest.
func signBy(ctx context.Context, issuer *localissuer.Issuer, key, subject string) string {
	GinkgoHelper()
	good := localissuer.With(issuer.Claims("oak", "oak"), "sub", subject)
	token, err := issuer.Sign(ctx, localissuer.Order{Key: key, Claims: marshal(good)})
	Expect(err).NotTo(HaveOccurred())
	return token
}
