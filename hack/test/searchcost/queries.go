package searchcost

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/extraction"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Query is a generated query.
type Query struct {
	typeName string
	values   url.Values
}

// Parse returns the query as a store gets it.
func (q Query) Parse(now time.Time) (store.Query, error) {
	parsed, err := search.Parse(split(q.values), search.Options{Type: q.typeName, Now: now})
	return store.Query{
		Types: parsed.Types, Where: parsed.Where, Sort: parsed.Sort, Count: parsed.Count, Total: parsed.Total, Includes: parsed.Includes, MaxIncluded: search.MaxCount,
	}, err
}

func (q Query) String() string {
	text, _ := url.QueryUnescape(q.values.Encode())
	return q.typeName + "?" + text
}

// Generator makes queries of two to four conditions, with values that records have.
type Generator struct {
	*rand.Rand
	// values are the values of a sample of the records, by type and parameter.
	values map[string]map[string][]store.Value
	// began is when the first record was written, ended when the last one was.
	began, ended time.Time
}

// NewGenerator returns a generator for records that were written between two times.
func NewGenerator(seed uint64, began, ended time.Time) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, 2)), values: map[string]map[string][]store.Value{}, began: began, ended: ended}
}

// Queries use the values of one in sampled records. maxSamples is the maximum number of values of a
// parameter that are kept.
const (
	sampled    = 7
	maxSamples = 2000
)

// Sample stores the values of some of the records that operations write, for use in queries.
func (g *Generator) Sample(ops []store.Op) {
	for i := 0; i < len(ops); i += sampled {
		of := g.values[ops[i].Key.Type]
		if of == nil {
			of = map[string][]store.Value{}
			g.values[ops[i].Key.Type] = of
		}
		for _, value := range (extraction.Extractor{}).Extract(ops[i].Key.Type, ops[i].Body.JSON) {
			if value.Value != nil && len(of[value.Param]) < maxSamples {
				of[value.Param] = append(of[value.Param], value.Value)
			}
		}
	}
}

func (g *Generator) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g *Generator, all ...T) T { return all[g.IntN(len(all))] }

// Query returns a query that the API accepts. It discards queries that the API would refuse, such as
// those with unknown codes of a fixed value set.
func (g *Generator) Query() Query {
	for {
		q := g.attempt()
		if _, err := q.Parse(g.ended); err == nil {
			return q
		}
	}
}

func (g *Generator) attempt() Query {
	q := Query{one(g, "Patient", "Patient", "Patient", "Patient", "Practitioner", "Organization", "RelatedPerson"), url.Values{}}
	for range one(g, 2, 2, 2, 3, 3, 4) {
		g.condition(q)
	}
	g.sort(q)
	q.values.Set("_count", "20")
	q.values.Set("_total", one(g, "none", "none", "none", "none", "estimate", "accurate"))
	if g.chance(15) {
		includes := map[string][]string{"Patient": {"Patient:general-practitioner", "Patient:organization"}, "RelatedPerson": {"RelatedPerson:patient"}, "Organization": {"Organization:partof"}}[q.typeName]
		if len(includes) > 0 {
			q.values.Set("_include", one(g, includes...))
		}
	}
	if g.chance(5) {
		q.values.Set("_revinclude", map[string]string{"Patient": "RelatedPerson:patient", "Practitioner": "Patient:general-practitioner", "Organization": "Patient:organization", "RelatedPerson": "Patient:link"}[q.typeName])
	}
	return q
}

// condition adds a condition to a query.
func (g *Generator) condition(q Query) {
	switch n := g.IntN(100); {
	case n < 5:
		g.related(q)
	case n < 10:
		g.updated(q)
	default:
		parameters := r4.SearchParameters(q.typeName)
		for range 20 {
			p := one(g, parameters...)
			if name, value, ok := g.written(q.typeName, p); ok {
				q.values.Add(name, value)
				return
			}
		}
	}
}

// written returns a condition on a parameter, with or without a modifier. ok is false if the sample
// has no value of the parameter, or if the chosen value cannot be used in a condition.
func (g *Generator) written(typeName string, p *r4.SearchParameter) (name, value string, ok bool) {
	if g.chance(6) {
		return p.Name + ":missing", one(g, "true", "false"), true
	}
	values := g.values[typeName][p.Name]
	if len(values) == 0 {
		return "", "", false
	}
	switch v := one(g, values...).(type) {
	case store.Token:
		code := escape(v.Code)
		full := escape(v.System) + "|" + code
		switch g.IntN(8) {
		case 0:
			return p.Name + ":not", one(g, code, full), true
		case 1:
			return p.Name, code + "," + escape(g.token(values)), true
		case 2:
			return p.Name, "nothing-has-it", true
		default:
			return p.Name, one(g, code, full, full), code != ""
		}
	case store.Text:
		return g.text(p, v)
	case store.Reference:
		return p.Name, v.Type + "/" + v.ID, v.Type != ""
	case store.Period:
		return g.period(p.Name, v)
	default:
		return "", "", false
	}
}

func (g *Generator) token(values []store.Value) string {
	token, _ := one(g, values...).(store.Token)
	return token.Code
}

func (g *Generator) text(p *r4.SearchParameter, v store.Text) (name, value string, ok bool) {
	runes := []rune(v.Original)
	if p.Kind != r4.SearchString || p.Name == "phonetic" || len(runes) < 3 {
		return p.Name, escape(v.Original), true
	}
	switch g.IntN(5) {
	case 0:
		return p.Name + ":exact", escape(v.Original), true
	case 1:
		from := g.IntN(len(runes) - 2)
		return p.Name + ":contains", escape(string(runes[from : from+3])), true
	default:
		return p.Name, escape(string(runes[:1+g.IntN(len(runes))])), true
	}
}

// period returns a condition on a date, or both ends of a range in one value, separated by rangeMark.
func (g *Generator) period(name string, v store.Period) (string, string, bool) {
	if v.From == store.TheBeginning {
		return "", "", false
	}
	at := time.UnixMicro(v.From).UTC()
	day := at.Format(time.DateOnly)
	switch g.IntN(6) {
	case 0:
		return name, at.Format("2006-01"), true
	case 1:
		return name, one(g, "ge", "gt", "sa") + day, true
	case 2:
		return name, one(g, "le", "lt", "eb") + day, true
	case 3:
		return name, day, true
	default: // both ends: split makes two values of it
		return name, "ge" + day + rangeMark + "le" + at.AddDate(0, 0, 1+g.IntN(200)).Format(time.DateOnly), true
	}
}

// rangeMark separates the two ends of a range in a generated value.
const rangeMark = "\x00"

// split returns the values of a query as they are sent: the ends of a range are two values.
func split(values url.Values) url.Values {
	sent := url.Values{}
	for name, all := range values {
		for _, value := range all {
			sent[name] = append(sent[name], strings.Split(value, rangeMark)...)
		}
	}
	return sent
}

// updated adds a condition on the time of update.
func (g *Generator) updated(q Query) {
	span := g.ended.Sub(g.began)
	at := func() string {
		return g.began.Add(time.Duration(g.Float64() * float64(span))).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	switch g.IntN(3) {
	case 0:
		q.values.Add("_lastUpdated", "ge"+at())
	case 1:
		q.values.Add("_lastUpdated", "le"+at())
	default:
		ends := []string{at(), at()}
		slices.Sort(ends)
		q.values.Add("_lastUpdated", "ge"+ends[0])
		q.values.Add("_lastUpdated", "le"+ends[1])
	}
}

// related adds a condition on related records.
func (g *Generator) related(q Query) {
	name := func(typeName, param string) string {
		values := g.values[typeName][param]
		text, _ := one(g, values...).(store.Text)
		return escape(text.Original)
	}
	switch q.typeName {
	case "Patient":
		switch g.IntN(3) {
		case 0:
			q.values.Add("general-practitioner:Practitioner.family:exact", name("Practitioner", "family"))
		case 1:
			q.values.Add("organization.name", name("Organization", "name"))
		default:
			q.values.Add("_has:RelatedPerson:patient:name", name("RelatedPerson", "name"))
		}
	case "Practitioner":
		q.values.Add("_has:Patient:general-practitioner:family", name("Patient", "family"))
	case "Organization":
		q.values.Add("partof.name", name("Organization", "name"))
	default:
		switch g.IntN(2) {
		case 0:
			q.values.Add("patient.family", name("Patient", "family"))
		default:
			q.values.Add("patient.general-practitioner:Practitioner.family:exact", name("Practitioner", "family"))
		}
	}
}

// sort adds an order to most queries.
func (g *Generator) sort(q Query) {
	if g.chance(40) {
		return
	}
	names := []string{"_lastUpdated", "_id"}
	for _, p := range r4.SearchParameters(q.typeName) {
		if (p.Kind == r4.SearchString || p.Kind == r4.SearchDate) && len(g.values[q.typeName][p.Name]) > 0 {
			names = append(names, p.Name)
		}
	}
	var keys []string
	for range one(g, 1, 1, 1, 2) {
		keys = append(keys, one(g, "", "-")+one(g, names...))
	}
	if len(keys) == 2 && strings.TrimPrefix(keys[0], "-") == strings.TrimPrefix(keys[1], "-") {
		keys = keys[:1]
	}
	q.values.Set("_sort", strings.Join(keys, ","))
}

// escape escapes a value of a search parameter.
func escape(value string) string {
	return strings.NewReplacer(`\`, `\\`, ",", `\,`, "|", `\|`, "$", `\$`).Replace(value)
}
