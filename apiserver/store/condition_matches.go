package store

import (
	"math"
	"slices"
	"strings"
)

// Matches reports whether a token meets the condition.
func (c TokenIs) Matches(t Token) bool {
	return (c.System == nil || *c.System == t.System) && (c.Code == nil || *c.Code == t.Code)
}

// Matches reports whether a pair meets the condition.
func (c PairIs) Matches(p Pair) bool { return c.First.Matches(p.First) && c.Second.Matches(p.Second) }

// Matches reports whether a text meets the condition.
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

// Matches reports whether a period meets the condition.
func (c PeriodIs) Matches(p Period) bool {
	return PeriodArea{c.From, c.Until}.Matches(p)
}

// Matches reports whether a period is in one of the areas.
func (c SinglePeriodIn) Matches(p Period) bool {
	return slices.ContainsFunc(c.Areas, func(a PeriodArea) bool { return a.Matches(p) })
}

// Matches reports whether a period is in the area.
func (a PeriodArea) Matches(p Period) bool { return a.From.contain(p.From) && a.Until.contain(p.Until) }

func (b Bounds) contain(t int64) bool { return b.Least <= t && t <= b.Most }

// Matches reports whether a reference equals To. bases are the base URLs of this site.
func (c RefersTo) Matches(r Reference, bases []string) bool {
	return c.To.local(bases) == r.local(bases)
}

// Matches reports whether a reference is to a record of this site with the id and one of the types.
// bases are the base URLs of this site.
func (c RefersToID) Matches(r Reference, bases []string) bool {
	local := r.local(bases)
	return local.Base == "" && local.ID != "" && local.ID == strings.ToLower(c.ID) &&
		(len(c.Types) == 0 || slices.Contains(c.Types, local.Type))
}

// local returns the reference without its base if it has a type and the base is one of this site.
// Otherwise it returns the unchanged reference.
func (r Reference) local(bases []string) Reference {
	if r.Type != "" && slices.Contains(bases, r.Base) {
		r.Base = ""
	}
	return r
}

// Local returns the key of the record to which r refers, and reports whether that is a record of
// this site. bases are the base URLs of this site.
func (r Reference) Local(bases []string) (Key, bool) {
	local := r.local(bases)
	return Key{Type: local.Type, ID: local.ID}, local.Base == "" && local.ID != ""
}

// Matches reports whether a point is at most Meters away from Center.
func (c Near) Matches(p Point) bool { return c.Center.Distance(p) <= c.Meters }

// EarthRadius is the mean radius of the WGS 84 ellipsoid in meters.
const EarthRadius = 6371008.8

// Distance returns the great-circle distance of two points in meters.
func (p Point) Distance(to Point) float64 {
	const degree = math.Pi / 180
	lat, otherLat := p.Latitude*degree, to.Latitude*degree
	sinLat, sinLon := math.Sin((otherLat-lat)/2), math.Sin((to.Longitude-p.Longitude)*degree/2)
	h := sinLat*sinLat + math.Cos(lat)*math.Cos(otherLat)*sinLon*sinLon
	return 2 * EarthRadius * math.Asin(math.Sqrt(min(1, h)))
}
