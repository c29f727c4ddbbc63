package store

import (
	"math"
	"slices"
	"strings"
)

// Matches reports whether a token is one that the condition takes.
func (c TokenIs) Matches(t Token) bool {
	return (c.System == nil || *c.System == t.System) && (c.Code == nil || *c.Code == t.Code)
}

// Matches reports whether a pair is one that the condition takes.
func (c PairIs) Matches(p Pair) bool { return c.First.Matches(p.First) && c.Second.Matches(p.Second) }

// Matches reports whether a text is one that the condition takes.
func (c TextIs) Matches(t Text) bool {
	switch c.Match {
	case Contains:
		return strings.Contains(t.Folded, c.Text)
	case Exactly:
		return t.Original == c.Text
	case StartsExactly:
		return strings.HasPrefix(t.Original, c.Text)
	default: // StartsWith
		return strings.HasPrefix(t.Folded, c.Text)
	}
}

// Matches reports whether a period is one that the condition takes.
func (c PeriodIs) Matches(p Period) bool {
	return PeriodArea{c.From, c.Until}.Matches(p)
}

// Matches reports whether a period is in one of the areas.
func (c SinglePeriodIn) Matches(p Period) bool {
	return slices.ContainsFunc(c.Areas, func(a PeriodArea) bool { return a.Matches(p) })
}

// Matches reports whether a period begins and ends as the area says.
func (a PeriodArea) Matches(p Period) bool { return a.From.hold(p.From) && a.Until.hold(p.Until) }

func (b Bounds) hold(t int64) bool { return b.Least <= t && t <= b.Most }

// Matches reports whether a reference is to the record that the condition names;
// bases are the site's own addresses.
func (c RefersTo) Matches(r Reference, bases []string) bool {
	return c.To.local(bases) == r.local(bases)
}

// Matches reports whether a reference is to a record of this site with the id, of
// one of the types.
func (c RefersToID) Matches(r Reference, bases []string) bool {
	local := r.local(bases)
	return local.Base == "" && local.ID != "" && local.ID == strings.ToLower(c.ID) &&
		(len(c.Types) == 0 || slices.Contains(c.Types, local.Type))
}

// local is the reference without its base, if that is the site's own.
func (r Reference) local(bases []string) Reference {
	if r.Type != "" && slices.Contains(bases, r.Base) {
		r.Base = ""
	}
	return r
}

// Local reports whether the reference is to a record of this site, and to which.
func (r Reference) Local(bases []string) (Key, bool) {
	local := r.local(bases)
	return Key{Type: local.Type, ID: local.ID}, local.Base == "" && local.ID != ""
}

// Matches reports whether a point is near enough.
func (c Near) Matches(p Point) bool { return c.Center.Distance(p) <= c.Meters }

// earthRadius is the mean radius of WGS 84, in meters.
const earthRadius = 6371008.8

// Distance is how far two points are apart along the great circle, in meters.
func (p Point) Distance(to Point) float64 {
	const degree = math.Pi / 180
	lat, otherLat := p.Latitude*degree, to.Latitude*degree
	sinLat, sinLon := math.Sin((otherLat-lat)/2), math.Sin((to.Longitude-p.Longitude)*degree/2)
	h := sinLat*sinLat + math.Cos(lat)*math.Cos(otherLat)*sinLon*sinLon
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}
