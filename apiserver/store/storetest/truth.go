package storetest

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// truth is a reference evaluator. It tests every record against every query, and shares no code
// with the engines or with the Matches methods of package store.
type truth struct{ records []indexedRecord }

type indexedRecord struct {
	store.Record
	values values
}

func newTruth(records []store.Record) *truth {
	var t truth
	for _, r := range records {
		var v values
		_ = json.Unmarshal(r.Body.JSON, &v) // other bodies have no values
		t.records = append(t.records, indexedRecord{r, v})
	}
	return &t
}

func (t *truth) matches(q store.Query) []indexedRecord {
	var found []indexedRecord
	for _, r := range t.records {
		if slices.Contains(q.Types, r.Key.Type) && t.visible(q, r) &&
			(q.Where == nil || t.holds(q, r, q.Where)) && (q.ByType[r.Key.Type] == nil || t.holds(q, r, q.ByType[r.Key.Type])) {
			found = append(found, r)
		}
	}
	order := sortOf(q)
	slices.SortFunc(found, func(a, b indexedRecord) int { return compare(order, a, b) })
	return found
}

func (t *truth) visible(q store.Query, r indexedRecord) bool {
	if q.Access == nil {
		return true
	}
	condition, ok := q.Access[r.Key.Type]
	q.Access = nil
	return ok && t.holds(q, r, condition)
}

func compare(order []store.Sort, a, b indexedRecord) int {
	for _, part := range order {
		c, missing := 0, false
		switch part.Field {
		case store.SortCreated:
			c = a.Created.Compare(b.Created)
		case store.SortUpdated:
			c = a.Updated.Compare(b.Updated)
		case store.SortID:
			c = strings.Compare(a.Key.ID, b.Key.ID)
		case store.SortText, store.SortPeriod:
			c, missing = compareValues(part, a.values, b.values)
		}
		if part.Descending && !missing {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	c := a.Created.Compare(b.Created)
	if order[len(order)-1].Descending {
		return -c
	}
	return c
}

// alignTies sorts expected records that are equal in the order of the query as they are on the
// page. Such records exist, because the order of records created in the same millisecond is up to
// the engine.
func alignTies(q store.Query, want []indexedRecord, page []store.Record) {
	order := sortOf(q)
	for i, r := range page {
		if i == len(want) {
			return
		}
		at := slices.IndexFunc(want[i:], func(w indexedRecord) bool { return w.Key == r.Key })
		if at > 0 && compare(order, want[i], want[i+at]) == 0 {
			want[i], want[i+at] = want[i+at], want[i]
		}
	}
}

func sortOf(q store.Query) []store.Sort {
	if len(q.Sort) == 0 {
		return []store.Sort{{Field: store.SortCreated}}
	}
	return q.Sort
}

// compareValues compares two records by a parameter. missing reports whether one of them has no value.
// Such a record comes last in both directions.
func compareValues(part store.Sort, a, b values) (order int, missing bool) {
	x, xOK := firstValue(part, a)
	y, yOK := firstValue(part, b)
	switch {
	case !xOK && !yOK:
		return 0, true
	case !xOK:
		return 1, true
	case !yOK:
		return -1, true
	case x.text != y.text:
		return strings.Compare(x.text, y.text), false
	case x.from < y.from:
		return -1, false
	case x.from > y.from:
		return 1, false
	}
	return 0, false
}

type sortValue struct {
	text string
	from int64
}

func firstValue(part store.Sort, v values) (sortValue, bool) {
	var all []sortValue
	if part.Field == store.SortText {
		for _, text := range v.Texts[part.Param] {
			all = append(all, sortValue{text: text.Folded})
		}
	} else {
		for _, period := range v.Periods[part.Param] {
			all = append(all, sortValue{from: period.From})
		}
	}
	if len(all) == 0 {
		return sortValue{}, false
	}
	slices.SortFunc(all, func(a, b sortValue) int {
		if a.text != b.text {
			return strings.Compare(a.text, b.text)
		}
		if a.from < b.from {
			return -1
		}
		return 1
	})
	if part.Descending {
		return all[len(all)-1], true
	}
	return all[0], true
}

func (t *truth) holds(q store.Query, r indexedRecord, condition store.Condition) bool {
	v := r.values
	switch c := condition.(type) {
	case store.All:
		for _, part := range c {
			if !t.holds(q, r, part) {
				return false
			}
		}
		return true
	case store.Any:
		return slices.ContainsFunc(c, func(part store.Condition) bool { return t.holds(q, r, part) })
	case store.Not:
		return !t.holds(q, r, c.Condition)
	case store.IDIn:
		return slices.ContainsFunc(c, func(id string) bool { return strings.EqualFold(id, r.Key.ID) })
	case store.UpdatedIn:
		after := c.From.IsZero() || r.Updated.Compare(c.From) >= 0
		return after && (c.Until.IsZero() || r.Updated.Compare(c.Until) < 0)
	case store.Present:
		return slices.Contains(v.Bare, c.Param) || len(v.Tokens[c.Param])+len(v.Pairs[c.Param])+len(v.Texts[c.Param])+
			len(v.Refs[c.Param])+len(v.Periods[c.Param])+len(v.Points[c.Param]) > 0
	case store.TokenIs:
		return slices.ContainsFunc(v.Tokens[c.Param], func(token store.Token) bool { return isToken(c, token) })
	case store.PairIs:
		return slices.ContainsFunc(v.Pairs[c.Param], func(p store.Pair) bool { return isToken(c.First, p.First) && isToken(c.Second, p.Second) })
	case store.TextIs:
		return slices.ContainsFunc(v.Texts[c.Param], func(text store.Text) bool { return isText(c, text) })
	case store.PeriodIs:
		return slices.ContainsFunc(v.Periods[c.Param], func(p store.Period) bool {
			return p.From >= c.From.Least && p.From <= c.From.Most && p.Until >= c.Until.Least && p.Until <= c.Until.Most
		})
	case store.SinglePeriodIn:
		return slices.ContainsFunc(c.Areas, func(a store.PeriodArea) bool {
			return t.holds(q, r, store.PeriodIs{Param: c.Param, From: a.From, Until: a.Until})
		})
	case store.HasLabel:
		return slices.ContainsFunc(v.Tokens[labelParam], func(token store.Token) bool { return token.Code == string(c) })
	case store.Near:
		return slices.ContainsFunc(v.Points[c.Param], func(p store.Point) bool { return haversine(c.Center, p) <= c.Meters })
	default:
		return t.related(q, r, condition)
	}
}

func isToken(c store.TokenIs, token store.Token) bool {
	system := c.System == nil || token.System == *c.System
	return system && (c.Code == nil || token.Code == *c.Code)
}

func isText(c store.TextIs, text store.Text) bool {
	return map[store.TextMatch]bool{
		store.StartsWith:    strings.HasPrefix(text.Folded, c.Text),
		store.Contains:      strings.Contains(text.Folded, c.Text),
		store.Exactly:       text.Original == c.Text,
		store.StartsExactly: strings.HasPrefix(text.Original, c.Text),
	}[c.Match]
}

func haversine(a, b store.Point) float64 {
	radians := func(degrees float64) float64 { return degrees * math.Pi / 180 }
	half := func(x float64) float64 { return (1 - math.Cos(x)) / 2 }
	h := half(radians(b.Latitude-a.Latitude)) + math.Cos(radians(a.Latitude))*math.Cos(radians(b.Latitude))*half(radians(b.Longitude-a.Longitude))
	return 2 * 6371008.8 * math.Asin(math.Sqrt(h))
}

// related evaluates the conditions on references.
func (t *truth) related(q store.Query, r indexedRecord, condition store.Condition) bool {
	switch c := condition.(type) {
	case store.RefersTo:
		return slices.ContainsFunc(r.values.Refs[c.Param], func(ref store.Reference) bool { return localReference(q, ref) == localReference(q, c.To) })
	case store.RefersToID:
		return slices.ContainsFunc(r.values.Refs[c.Param], func(ref store.Reference) bool {
			to := localReference(q, ref)
			return to.Base == "" && to.ID == strings.ToLower(c.ID) && (len(c.Types) == 0 || slices.Contains(c.Types, to.Type))
		})
	case store.Chain:
		return slices.ContainsFunc(t.targets(q, r, c.Param), func(to indexedRecord) bool {
			return to.Key.Type == c.Type && t.visible(q, to) && (c.Where == nil || t.holds(q, to, c.Where))
		})
	case store.ReferredBy:
		return slices.ContainsFunc(t.records, func(from indexedRecord) bool {
			return from.Key.Type == c.Type && t.visible(q, from) && (c.Where == nil || t.holds(q, from, c.Where)) &&
				slices.ContainsFunc(t.targets(q, from, c.Param), func(to indexedRecord) bool { return to.Key == r.Key })
		})
	case store.LinksTo:
		return !slices.ContainsFunc(r.values.Refs[linkParam], func(ref store.Reference) bool {
			to := localReference(q, ref)
			local := c.Param == linkParam && to.Base == "" && to.ID != ""
			return local && !slices.ContainsFunc(t.records, func(other indexedRecord) bool {
				return to == (store.Reference{Type: other.Key.Type, ID: strings.ToLower(other.Key.ID)}) &&
					other.Key.Type == c.Type && t.holds(q, other, c.Where)
			})
		})
	case store.RefersAround:
		return slices.ContainsFunc(r.values.Refs[c.Param], func(ref store.Reference) bool {
			return slices.Contains(t.around(q, r.Key.Type, c), localReference(q, ref))
		})
	}
	panic("unknown condition")
}

// localReference returns the reference without its base if that is a base URL of the site.
func localReference(q store.Query, ref store.Reference) store.Reference {
	if ref.Type != "" && slices.Contains(q.Bases, ref.Base) {
		ref.Base = ""
	}
	return ref
}

// targets returns the records to which a record refers by a parameter, or by any parameter if param
// is empty.
func (t *truth) targets(q store.Query, r indexedRecord, param string) []indexedRecord {
	var found []indexedRecord
	for name, refs := range r.values.Refs {
		if param != "" && name != param {
			continue
		}
		for _, ref := range refs {
			for _, other := range t.records {
				if localReference(q, ref) == (store.Reference{Type: other.Key.Type, ID: strings.ToLower(other.Key.ID)}) {
					found = append(found, other)
				}
			}
		}
	}
	return found
}

// around returns the To of a condition and all members of the hierarchy above or below it. It does
// not follow references of hidden records.
func (t *truth) around(q store.Query, typeName string, c store.RefersAround) []store.Reference {
	members := []store.Reference{localReference(q, c.To)}
	if members[0].Base != "" { // the hierarchy of another server is not known
		return members
	}
	for grown := true; grown; {
		grown = false
		for _, r := range t.records {
			self := store.Reference{Type: r.Key.Type, ID: strings.ToLower(r.Key.ID)}
			if r.Key.Type != typeName || !t.visible(q, r) {
				continue
			}
			for _, ref := range r.values.Refs[c.Param] {
				from, to := localReference(q, ref), self
				if c.Above {
					from, to = self, localReference(q, ref)
				}
				if to.Base == "" && to.ID != "" && slices.Contains(members, from) && !slices.Contains(members, to) {
					members = append(members, to)
					grown = true
				}
			}
		}
	}
	return members
}

// included returns the records that the includes of a query select for a page.
func (t *truth) included(q store.Query, page []indexedRecord) []store.Key {
	inside := func(all []indexedRecord, r indexedRecord) bool {
		return slices.ContainsFunc(all, func(other indexedRecord) bool { return other.Key == r.Key })
	}
	var found []indexedRecord
	from := page
	for depth := 0; len(from) > 0; depth++ {
		var added []indexedRecord
		for _, other := range t.records {
			if inside(page, other) || inside(found, other) || !t.visible(q, other) {
				continue
			}
			for _, include := range q.Includes {
				if depth > 0 && !include.Iterate {
					continue
				}
				if slices.ContainsFunc(from, func(r indexedRecord) bool { return t.leads(q, include, r, other) }) && !inside(added, other) {
					added = append(added, other)
				}
			}
		}
		found, from = append(found, added...), added
	}
	keys := []store.Key{}
	for _, r := range found {
		keys = append(keys, r.Key)
	}
	return keys
}

// leads reports whether an include leads from a record to another one.
func (t *truth) leads(q store.Query, include store.Include, from, to indexedRecord) bool {
	if include.Reverse {
		from, to = to, from
	}
	return (include.Type == "" || include.Type == from.Key.Type) && (include.Target == "" || include.Target == to.Key.Type) &&
		slices.ContainsFunc(t.targets(q, from, include.Param), func(r indexedRecord) bool { return r.Key == to.Key })
}
