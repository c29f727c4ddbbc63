package randomsearch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// filter makes a filter for records of the types. depth is the number of chains and _has around the
// filter.
func (g *generator) filter(types []string, depth int) Filter {
	names := append(g.common(types), "_id", "_lastUpdated", "telecom", "patient")
	if depth < 3 && g.chance(12) {
		if f, ok := g.has(types, depth); ok {
			return f
		}
	}
	for _, name := range names { // few parameters are of these kinds, so they get more weight
		p := g.world.parameters[types[0]][name]
		if p.Kind == "date" || p.Kind == "special" || p.Kind == "composite" || name == "partof" || name == "parent" || len(g.world.kept(p.Targets)) > 1 {
			names = append(names, name, name, name)
		}
	}
	for {
		name := pick(g.Rand, names)
		kind := g.world.parameters[types[0]][name].Kind
		switch name {
		case "telecom":
			kind = "token"
		case "patient":
			kind = "reference"
		}
		if g.chance(13) && kind != "composite" {
			return g.missing(name)
		}
		switch name {
		case "_id":
			return g.id()
		case "_lastUpdated":
			return g.alternatives(name, "", func() (string, test) { return g.date(types, name, prefixes) })
		}
		if f, ok := g.of(kind, types, name, depth); ok {
			return f
		}
	}
}

// missing makes a filter with :missing.
func (g *generator) missing(name string) Filter {
	holds := present(name)
	if name == "_id" || name == "_lastUpdated" { // all records have them
		holds = func(*World, *Record) bool { return true }
	}
	missing := g.chance(50)
	if missing {
		holds = not(holds)
	}
	return Filter{name + ":missing", strconv.FormatBool(missing), holds}
}

// of makes a filter by a parameter of a kind. It reports false if no chain was possible.
func (g *generator) of(kind string, types []string, name string, depth int) (Filter, bool) {
	switch kind {
	case "token":
		return g.token(types, name), true
	case "string":
		return g.text(types, name), true
	case "date":
		return g.alternatives(name, "", func() (string, test) { return g.date(types, name, prefixes) }), true
	case "uri":
		if g.world.parameters[types[0]][name].Canonical {
			return g.canonical(types, name), true
		}
		return g.uri(types, name), true
	case "reference":
		if depth < 3 && g.chance(55) {
			return g.chain(types, name, depth)
		}
		return g.refers(types, name), true
	case "composite":
		return g.alternatives(name, "", func() (string, test) { return g.pair(types, name) }), true
	case "special":
		return g.alternatives(name, "", func() (string, test) { return g.near(name) }), true
	}
	panic("randomsearch: no filters of kind " + kind + " for " + name)
}

// alternatives makes a filter of one value or of several alternatives, each from a call of one.
func (g *generator) alternatives(name, modifier string, one func() (string, test)) Filter {
	var values []string
	var tests []test
	count := pick(g.Rand, []int{1, 1, 1, 2, 3})
	if g.chance(3) {
		count = 12
	}
	for range count {
		value, t := one()
		values, tests = append(values, value), append(tests, t)
	}
	if modifier != "" {
		name += ":" + modifier
	}
	return Filter{name, strings.Join(values, ","), anyOf(tests)}
}

var escapes = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `|`, `\|`, `$`, `\$`)

func (g *generator) id() Filter {
	f := g.alternatives("_id", "", func() (string, test) {
		r := pick(g.Rand, g.world.Records)
		return g.flipped(r.ID), func(_ *World, other *Record) bool { return other.ID == r.ID }
	})
	if g.chance(20) {
		return Filter{"_id:not", f.Value, not(f.Holds)}
	}
	return f
}

// flipped returns a text with some ASCII letters in the other case.
func (g *generator) flipped(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r > unicode.MaxASCII || !g.chance(20):
			return r
		case unicode.IsUpper(r):
			return unicode.ToLower(r)
		default:
			return unicode.ToUpper(r)
		}
	}, text)
}

// valueSets has, by parameter, a value set, its code system and its codes, for :in and :not-in.
var valueSets = map[string][]string{
	"gender":      {"http://hl7.org/fhir/ValueSet/administrative-gender", "http://hl7.org/fhir/administrative-gender", "male", "female", "other", "unknown"},
	"address-use": {"http://hl7.org/fhir/ValueSet/address-use", "http://hl7.org/fhir/address-use", "home", "work", "temp", "old", "billing"},
}

func (g *generator) token(types []string, name string) Filter {
	_, hasText := sample[store.Text](g, types[:1], name+":text")
	_, hasType := sample[store.Token](g, types[:1], name+":of-type")
	set := valueSets[name]
	single := len(types) == 1
	switch {
	case single && hasText && g.chance(15):
		return g.alternatives(name, "text", func() (string, test) {
			v, _ := sample[store.Text](g, types, name+":text")
			text := g.prefix(v.Original)
			return escapes.Replace(text), startsWith(name+":text", text)
		})
	case single && hasType && g.chance(25):
		return g.alternatives(name, "of-type", func() (string, test) { return g.ofType(types, name) })
	case set != nil && g.chance(20):
		var tests []test
		for _, code := range set[2:] {
			tests = append(tests, tokenIs(name, &set[1], &code))
		}
		if g.chance(50) {
			return Filter{name + ":not-in", set[0], not(anyOf(tests))}
		}
		return Filter{name + ":in", set[0], anyOf(tests)}
	}
	f := g.alternatives(name, "", func() (string, test) {
		written, system, code := g.tokenValue(types, name)
		return written, tokenIs(name, system, code)
	})
	if g.chance(20) {
		return Filter{name + ":not", f.Value, not(f.Holds)}
	}
	return f
}

// tokenValue chooses a token and its form in a query: with or without system or code. system and code
// are nil if the query does not restrict them.
func (g *generator) tokenValue(types []string, name string) (written string, system, code *string) {
	v, ok := sample[store.Token](g, types, name)
	if !ok {
		v = store.Token{System: "urn:s1", Code: "true"}
	}
	if g.chance(15) { // a code with a system that it may not have
		v.System = pick(g.Rand, systems)
	}
	text := g.flipped(v.Code)
	form := g.IntN(4)
	switch {
	case v.Code == "" || form == 0 && v.System != "":
		return escapes.Replace(v.System) + "|", &v.System, nil
	case form <= 1:
		return escapes.Replace(v.System) + "|" + escapes.Replace(text), &v.System, &text
	case form == 2 && g.chance(30):
		none := ""
		return "|" + escapes.Replace(text), &none, &text
	}
	return escapes.Replace(text), nil, &text
}

// ofType makes a value of :of-type: an identifier with its type, as system|code|value.
func (g *generator) ofType(types []string, name string) (string, test) {
	for {
		v, _ := sample[store.Token](g, types, name+":of-type")
		// v.Code is the code and the value, joined by a |. The code may contain a | too, so one is
		// chosen at random.
		for i, c := range v.Code {
			if c == '|' && v.System != "" && g.chance(60) {
				code := g.flipped(v.Code)
				return escapes.Replace(v.System) + "|" + escapes.Replace(code[:i]) + "|" + escapes.Replace(code[i+1:]), tokenIs(name+":of-type", &v.System, &code)
			}
		}
		if g.chance(5) {
			system, code := "urn:s1", "a|nothing"
			return "urn:s1|a|nothing", tokenIs(name+":of-type", &system, &code)
		}
	}
}

// prefix returns a random prefix of a text that is not empty after folding.
func (g *generator) prefix(text string) string {
	runes := []rune(text)
	for {
		if part := string(runes[:1+g.IntN(len(runes))]); searchtruth.Folded(part) != "" {
			return g.flipped(part)
		}
	}
}

func (g *generator) text(types []string, name string) Filter {
	one := func() string {
		if v, ok := sample[store.Text](g, types, name); ok && name != "phonetic" {
			return v.Original
		}
		return pick(g.Rand, texts)
	}
	modifier := pick(g.Rand, []string{"", "", "contains", "exact"})
	if name == "phonetic" {
		return g.phonetic(name)
	}
	return g.alternatives(name, modifier, func() (string, test) {
		text := one()
		switch modifier {
		case "exact":
			if g.chance(30) {
				text = g.flipped(text)
			}
			return escapes.Replace(text), exactly(name, text)
		case "contains":
			runes := []rune(text)
			if part := string(runes[g.IntN(len(runes)):]); searchtruth.Folded(part) != "" {
				text = part
			}
			text = g.prefix(text)
			return escapes.Replace(text), contains(name, text)
		}
		text = g.prefix(text)
		return escapes.Replace(text), startsWith(name, text)
	})
}

// phonetic makes a filter by a text whose words have phonetic codes.
func (g *generator) phonetic(name string) Filter {
	return g.alternatives(name, "", func() (string, test) {
		for {
			text := pick(g.Rand, texts)
			if words := g.codesOf(text); len(words) > 0 {
				return escapes.Replace(text), sounds(name, words)
			}
		}
	})
}

// codesOf returns the phonetic codes of the words of a text. It leaves out words without codes.
func (g *generator) codesOf(text string) [][]string {
	var words [][]string
	for _, word := range strings.Fields(text) {
		if codes := g.sounds[word]; len(codes) > 0 {
			words = append(words, codes)
		}
	}
	return words
}

func (g *generator) uri(types []string, name string) Filter {
	modifier := pick(g.Rand, []string{"", "", "above", "below"})
	compare := map[string]func(param, uri string) test{"": exactly, "above": above, "below": below}[modifier]
	return g.alternatives(name, modifier, func() (string, test) {
		uri := pick(g.Rand, uris)
		if v, ok := sample[store.Text](g, types, name); ok && g.chance(50) {
			uri = v.Original
		}
		return escapes.Replace(uri), compare(name, uri)
	})
}

// canonical makes a filter of canonical URLs.
func (g *generator) canonical(types []string, name string) Filter {
	modifier := pick(g.Rand, []string{"", "", "above", "below"})
	return g.alternatives(name, modifier, func() (string, test) {
		url, version := pick(g.Rand, uris), ""
		if v, ok := sample[store.Text](g, types, name); ok && g.chance(70) {
			url, version, _ = strings.Cut(v.Original, "|")
		}
		if g.chance(30) {
			version = pick(g.Rand, append(versions, ""))
		}
		written := escapes.Replace(url)
		if version != "" {
			written += "|" + escapes.Replace(version)
		}
		return written, canonicalIs(name, modifier, url, version)
	})
}

// layouts are the precisions of dates in queries. next returns the end of a date with this precision.
var layouts = []struct {
	layout string
	next   func(time.Time) time.Time
}{
	{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
	{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
	{"2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01-02T15:04Z07:00", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }}, // in the site's zone, UTC
	{"2006-01-02T15:04:05Z07:00", func(t time.Time) time.Time { return t.Add(time.Second) }},
	{"2006-01-02T15:04:05.000Z07:00", func(t time.Time) time.Time { return t.Add(time.Millisecond) }},
	{"2006-01-02T15:04:05.0000000Z07:00", func(t time.Time) time.Time { return t.Add(100 * time.Nanosecond) }}, // finer than what is stored
}

var prefixes = []string{"", "eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap"}

// ends makes the two filters of a range with two ends, by a date parameter or _lastUpdated.
func (g *generator) ends(types []string) []Filter {
	names := []string{"_lastUpdated"}
	for _, name := range g.common(types) {
		if g.world.parameters[types[0]][name].Kind == "date" {
			names = append(names, name, name, name)
		}
	}
	name := pick(g.Rand, names)
	end := func(prefixes ...string) Filter {
		return g.alternatives(name, "", func() (string, test) { return g.date(types, name, prefixes) })
	}
	return []Filter{end("ge", "gt", "sa", "ge"), end("le", "lt", "eb", "lt")}
}

// date chooses a date near one that a record has, and one of the prefixes.
func (g *generator) date(types []string, name string, prefixes []string) (string, test) {
	prefix := pick(g.Rand, prefixes)
	around := pick(g.Rand, g.world.Records).Updated
	if name != "_lastUpdated" {
		around = time.Date(1980, 5, 3, 0, 0, 0, 0, time.UTC).UnixMicro()
		if v, ok := sample[store.Period](g, types, name); ok {
			around = v.From
			if around == store.TheBeginning || v.Until != store.TheEnd && g.chance(50) {
				around = v.Until
			}
		}
	}
	at := time.UnixMicro(around).UTC().Add(pick(g.Rand, []time.Duration{0, 0, -time.Millisecond, time.Millisecond, time.Hour, -24 * time.Hour, -24 * time.Hour, -48 * time.Hour}))
	l := pick(g.Rand, layouts)
	if strings.Contains(l.layout, "T") {
		at = at.In(time.FixedZone("", 60*pick(g.Rand, []int{0, 0, 120, -210})))
	}
	written := at.Add(time.Duration(g.IntN(10)) * 100 * time.Nanosecond).Format(l.layout)
	from, err := time.Parse(l.layout, written)
	if err != nil {
		panic(err)
	}
	a, b := ticks(from), ticks(l.next(from))
	if prefix == "ap" { // ap widens the range by a tenth of its distance from now, in whole microseconds
		least, most, now := from.UnixMicro(), l.next(from).Add(time.Microsecond-1).UnixMicro(), g.now.UnixMicro()
		a, b = (least-max(now-least, least-now)/10)*ticksPerMicro, (most+max(now-most, most-now)/10)*ticksPerMicro
	}
	if name == "_lastUpdated" {
		return prefix + written, updatedIs(prefix, a, b)
	}
	return prefix + written, periodIs(name, prefix, a, b)
}

func (g *generator) pair(types []string, name string) (string, test) {
	first, firstSystem, firstCode := g.tokenValue(types, "characteristic")
	second, secondSystem, secondCode := g.tokenValue(types, "value")
	if v, ok := sample[store.Pair](g, types, name); ok && g.chance(70) && v.First.Code != "" && v.Second.Code != "" {
		first, firstSystem, firstCode = escapes.Replace(v.First.Code), nil, &v.First.Code
		second, secondSystem, secondCode = escapes.Replace(v.Second.System)+"|"+escapes.Replace(v.Second.Code), &v.Second.System, &v.Second.Code
	}
	return first + "$" + second, pairIs(name, [2]*string{firstSystem, firstCode}, [2]*string{secondSystem, secondCode})
}

// near chooses a center and a distance, so that no place is within a meter of the edge of the circle.
func (g *generator) near(name string) (string, test) {
	for {
		at := pick(g.Rand, places)
		center := store.Point{Latitude: at[0] + float64(g.IntN(21)-10)/1000, Longitude: at[1]}
		distance := pick(g.Rand, []float64{0.5, 1, 2, 5, 100, 600, 20000})
		if math.Abs(center.Latitude) > 90 || slices.ContainsFunc(places, func(p [2]float64) bool {
			d := meters(center, store.Point{Latitude: p[0], Longitude: p[1]})
			return math.Abs(d-distance*1000) < 1
		}) {
			continue
		}
		written := fmt.Sprintf("%.3f|%v", center.Latitude, center.Longitude)
		center.Latitude, _ = strconv.ParseFloat(fmt.Sprintf("%.3f", center.Latitude), 64)
		switch g.IntN(4) {
		case 0:
			return fmt.Sprintf("%s|%v|m", written, distance*1000), near(name, center, distance*1000)
		case 1:
			return fmt.Sprintf("%s|%v", written, distance), near(name, center, distance*1000)
		case 2:
			return written, near(name, center, 5000)
		}
		return fmt.Sprintf("%s|%v|km", written, distance), near(name, center, distance*1000)
	}
}
