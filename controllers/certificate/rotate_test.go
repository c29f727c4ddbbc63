package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

var (
	names = []string{"paddock-aggregated.paddock-system.svc", "paddock-facade.paddock-system.svc"}
	birth = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
)

const day = 24 * time.Hour

func mustRotate(t *testing.T, s state, names []string, now time.Time) state {
	t.Helper()
	next, err := rotate(s, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// trusts fails unless whoever trusts the bundle of one state trusts the server of another.
func trusts(t *testing.T, who, whom state, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(who.bundle())
	for _, name := range names {
		if _, err := whom.serving.parse().Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Fatalf("at %s, %s: %v", now, name, err)
		}
	}
}

func certificatesOf(bundle []byte) (n int) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

// A pass every second day for twelve years, in which at every pass somebody still has the
// bundle, and a server still the certificate, of the pass before.
func TestRotateForYears(t *testing.T) {
	now := birth
	s := mustRotate(t, state{}, names, now)
	var authorities, servings, both int
	for ; now.Before(birth.Add(12 * 365 * day)); now = now.Add(2 * day) {
		next := mustRotate(t, s, names, now)
		trusts(t, next, next, now)
		trusts(t, s, next, now)
		trusts(t, next, s, now)
		if !bytes.Equal(s.authority.certificate, next.authority.certificate) {
			authorities++
			if !bytes.Equal(s.serving.certificate, next.serving.certificate) {
				t.Fatalf("at %s an authority signed before anybody could know it", now)
			}
		}
		if !bytes.Equal(s.serving.certificate, next.serving.certificate) {
			servings++
		}
		if certificatesOf(next.bundle()) == 2 {
			both++
		}
		s = next
	}
	if authorities != 2 { // after four years, and after eight
		t.Errorf("%d new authorities in twelve years, want 2", authorities)
	}
	if servings < 71 || servings > 76 { // one in sixty days, and one for each authority
		t.Errorf("%d new certificates in twelve years, want about 73", servings)
	}
	if want := 2 * 365 / 2; both < want-4 || both > want+4 { // what is left of each old one's life
		t.Errorf("the bundle held two authorities at %d passes, want about %d", both, want)
	}
}

func TestRotate(t *testing.T) {
	fresh := mustRotate(t, state{}, names, birth)
	other := mustRotate(t, state{}, names, birth)
	for name, tt := range map[string]struct {
		from  func(*state)
		names []string
		after time.Duration
		// What is expected to be another one.
		authority, serving bool
	}{
		"nothing is due":          {after: 59 * day},
		"the certificate is due":  {after: 60 * day, serving: true},
		"the certificate is over": {after: 200 * day, serving: true},
		"the authority is due": {
			from:  func(s *state) { s.serving, _ = newServing(s.authority, names, birth.Add(4*365*day-day)) },
			after: 4 * 365 * day, authority: true,
		},
		"all is over":                    {after: 20 * 365 * day, authority: true, serving: true},
		"a clock that was put back":      {after: -2 * skew, authority: true, serving: true},
		"other names":                    {names: names[:1], serving: true},
		"no certificate":                 {from: func(s *state) { s.serving = keyPair{} }, serving: true},
		"a certificate without its key":  {from: func(s *state) { s.serving.key = other.serving.key }, serving: true},
		"a certificate of somebody else": {from: func(s *state) { s.serving = other.serving }, serving: true},
		"not a certificate":              {from: func(s *state) { s.serving.certificate = []byte("x") }, serving: true},
		"no authority":                   {from: func(s *state) { s.authority = keyPair{} }, authority: true, serving: true},
		"an authority without its key":   {from: func(s *state) { s.authority.key = nil }, authority: true, serving: true},
		"an authority that is none":      {from: func(s *state) { s.authority = s.serving }, authority: true, serving: true},
		"a previous one that is not one": {from: func(s *state) { s.previous = []byte("x") }},
	} {
		t.Run(name, func(t *testing.T) {
			from, now, wanted := fresh, birth.Add(tt.after), names
			if tt.from != nil {
				tt.from(&from)
			}
			if tt.names != nil {
				wanted = tt.names
			}
			next := mustRotate(t, from, wanted, now)
			if got := !bytes.Equal(from.authority.certificate, next.authority.certificate); got != tt.authority {
				t.Errorf("another authority: %v, want %v", got, tt.authority)
			}
			if got := !bytes.Equal(from.serving.certificate, next.serving.certificate); got != tt.serving {
				t.Errorf("another certificate: %v, want %v", got, tt.serving)
			}
			if again := mustRotate(t, next, wanted, now); !bytes.Equal(again.bundle(), next.bundle()) || !bytes.Equal(again.serving.certificate, next.serving.certificate) {
				t.Error("a second pass at the same time changes something")
			}
			if !isTrusted(next.serving.parse(), next.bundle(), now) {
				t.Error("the certificate is not trusted")
			}
		})
	}
}
