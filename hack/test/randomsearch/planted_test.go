package randomsearch

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var planted = flag.Bool("planted", false, "whether to plant faults and see that the random queries find them")

// fault is a mistake in the server: a text that its file has exactly once, and its replacement.
type fault struct{ name, file, old, new string }

// engine is the one whose answers the fault makes wrong.
func (f fault) engine() string {
	if strings.Contains(f.file, "/postgres/") {
		return "postgres"
	}
	return "cluster"
}

// faults are mistakes in what records are found by, in matching, in paging, in sorting
// and in what a caller may see.
var faults = []fault{
	{
		"extraction: suffixes of names are forgotten", "apiserver/fhir/search/extract/text.go",
		`case "given", "prefix", "suffix", "line":`, `case "given", "prefix", "line":`,
	},
	{
		"extraction: ids in references keep their case", "apiserver/fhir/search/extract/reference.go",
		`ID: strings.ToLower(id)`, `ID: strings.Clone(id)`,
	},
	{
		"extraction: periods end when their last day begins", "apiserver/fhir/search/extract/period.go",
		`period.Until = until`, `period.Until = from + 0*until`,
	},
	{
		"extraction: elements without anything to compare are missing", "apiserver/fhir/search/extract/extract.go",
		`if !e.hasValue {`, `if false && !e.hasValue {`,
	},
	{
		"extraction: months have 30 days", "apiserver/fhir/r4/moment_range.go",
		`first.AddDate(0, 1, 0)`, `first.AddDate(0, 0, 30)`,
	},
	{
		"extraction: only the first value of a composite is paired", "apiserver/fhir/search/extract/group.go",
		`range values[:min(len(values),`, `range values[:min(1, len(values),`,
	},
	{
		"extraction: accents matter", "apiserver/fhir/search/fold/fold.go",
		`if unicode.Is(unicode.Mn, r) {`, `if false && unicode.Is(unicode.Mn, r) {`,
	},
	{
		"extraction: codes have no implicit system", "apiserver/fhir/search/extract/extract.go",
		`store.Token{System: e.param.system, `, `store.Token{`,
	},
	{
		"matching: a system is not compared where there is a code", "apiserver/store/condition_matches.go",
		`(c.System == nil || *c.System`, `(c.System == nil || c.Code != nil || *c.System`,
	},
	{
		"matching: |code is any code", "apiserver/fhir/search/token.go",
		`if len(parts) == 2 {`, `if len(parts) == 2 && parts[0] != "" {`,
	},
	{
		"matching: sa is for periods that start within", "apiserver/fhir/search/period.go",
		`{{From: atLeast(ceil(r.until)), `, `{{From: atLeast(ceil(r.from)), `,
	},
	{
		"matching: periods are no longer than dates are", "apiserver/fhir/search/definition.go",
		`name != "date" && name != "dateTime" && name != "instant"`, `name == ""`,
	},
	{
		"matching: dates in a range with two ends are no longer than a day", "apiserver/fhir/search/intersect.go",
		`long.From < until.Least-day`, `long.From < store.TheBeginning`,
	},
	{
		"matching: dates finer than microseconds are cut", "apiserver/fhir/search/date.go",
		`t.Add(time.Microsecond - 1).UnixMicro()`, `t.UnixMicro()`,
	},
	{
		"matching: one end of a range with two ends is forgotten", "apiserver/fhir/search/intersect.go",
		`for _, group := range groups[1:] {`, `for _, group := range groups[:0] {`,
	},
	{
		"matching: :below is whatever begins with the URI", "apiserver/fhir/search/uri.go",
		`strings.TrimSuffix(uri, "/") + "/"`, `strings.TrimSuffix(uri, "/")`,
	},
	{
		"matching: a canonical URL is found without a version only", "apiserver/fhir/search/canonical_url.go",
		`store.TextIs{Param: param, Match: store.StartsExactly, Text: url + "|"},`, ``,
	},
	{
		"matching: a version begins with whatever its text begins with", "apiserver/fhir/search/canonical_url.go",
		`c.url + "|" + c.version + "."}`, `c.url + "|" + c.version}`,
	},
	{
		"matching: the record of a compartment is not in it", "apiserver/fhir/search/compartment.go",
		`if m.Self {`, `if false && m.Self {`,
	},
	{
		"matching: all types are in a compartment by one parameter", "apiserver/fhir/search/compartment.go",
		`p.query.ByType[typeName] = c.condition(m)`, `p.query.ByType[typeName] = c.condition(append(c.Members, m)[0])`,
	},
	{
		"postgres, matching: conditions by type are forgotten", "apiserver/store/postgres/sqlplan/search.go",
		"c.splitPredicates(typeName, s.Query.WhereOf(typeName))\n\tif s.After", "c.splitPredicates(typeName, s.Query.Where)\n\tif s.After",
	},
	{
		"matching: chains do not look at the type referred to", "apiserver/store/cluster/reference_filter.go",
		`if to.Type == condition.Type {`, `if to.Type != "" {`,
	},
	{
		"matching: references by the site's own address are elsewhere", "apiserver/store/cluster/reference_filter.go",
		`for _, base := range c.bases {`, `for _, base := range c.bases[:0] {`,
	},
	{
		"matching: what an update removed is still found", "apiserver/store/cluster/postings.go",
		`treeOf(p.texts, value.Param, byText).Delete(`, `treeOf(p.texts, value.Param, byText).Get(`,
	},
	{
		"access: chains lead through what is hidden", "apiserver/store/cluster/reference_filter.go",
		`f, err := c.compileVisible(typeName, condition)`, `f, err := c.compile(typeName, condition)`,
	},
	{
		"access: what is hidden is included", "apiserver/store/cluster/include.go",
		`if !visible.matches(other) {`, `if false && !visible.matches(other) {`,
	},
	{
		"including: everything goes on from what is included", "apiserver/store/cluster/include.go",
		`if depth > 0 && !include.Iterate {`, `if depth > 1 && !include.Iterate {`,
	},
	{
		"including: the target of _revinclude does not matter", "apiserver/store/cluster/include.go",
		"if include.Target != \"\" && include.Target != self.Type {", "if include.Target == \"?\" {",
	},
	{
		"paging: the last record of a page is on the next one too", "apiserver/store/cluster/search.go",
		`o.Compare(after, &at.Place) < 0`, `o.Compare(after, &at.Place) <= 0`,
	},
	{
		"paging: there is no page after a full one", "apiserver/store/cluster/search.go",
		`n: skip + query.Count + 1}`, `n: skip + query.Count}`,
	},
	{
		"paging: descending pages begin in the middle of equal ranks", "apiserver/store/cluster/scan.go",
		`from.Created = math.MaxInt64`, `from.Created = after.Created`,
	},
	{
		"paging: the total is what the page has", "apiserver/store/cluster/search.go",
		`		page.total = matched`, `		page.total = min(matched, int64(len(page.places)))`,
	},
	{
		"sorting: each page of a range begins anew", "apiserver/store/cluster/value_range.go",
		`if after != none && comesBefore(first, after) {`, `if after != none && false {`,
	},
	{
		"sorting: the first value counts in either direction", "apiserver/store/cluster/rank.go",
		`order.Directed(r.Compare(first), part.Descending) < 0`, `r.Compare(first) < 0`,
	},
	{
		"sorting: what lacks the value comes first when descending", "apiserver/store/order/order.go",
		"case x.Missing:\n\t\t\treturn 1", "case x.Missing:\n\t\t\treturn Directed(1, part.Descending)",
	},
	{
		"sorting: records with several values come several times", "apiserver/store/cluster/scan.go",
		`if e, at := of(value); w.exceeded() || e.rank(part) == at && !yield(e) {`, `if e, _ := of(value); w.exceeded() || !yield(e) {`,
	},
	{
		"sorting: ties are broken in one direction", "apiserver/store/order/order.go",
		`o.Descends())`, `false)`,
	},
	{
		"postgres, extraction: elements without anything to compare are missing", "apiserver/store/postgres/indexrow/indexer.go",
		`r.addParam(key, PresenceBit(x.Extractor.Ordinal(typeName, param)))`, `if entry.Value != nil { r.addParam(key, PresenceBit(x.Extractor.Ordinal(typeName, param))) }`,
	},
	{
		"postgres, matching: a record on two lists that are walked together comes twice", "apiserver/store/postgres/sqlplan/access_path.go",
		`"SELECT DISTINCT x.rid FROM (" + strings`, `"SELECT x.rid FROM (" + strings`,
	},
	{
		"postgres, matching: of lists that are walked together only the first is", "apiserver/store/postgres/sqlplan/access_path.go",
		`strings.Join(texts, " UNION ALL ") + ") x ORDER`, `texts[0] + ") x ORDER`,
	},
	{
		"postgres, matching: systems of facets do not matter", "apiserver/store/postgres/sqlplan/compiler.go",
		`c.index.Hash.FacetMark(key, is)`, `c.index.Hash.FacetMark(key, store.TokenIs{Code: is.Code})`,
	},
	{
		"postgres, matching: what an update removed is still found", "apiserver/store/postgres/indexrow/indexer.go",
		`without(r.indexed, other.indexed, compareIndexedTexts)`, `without(r.indexed, r.indexed, compareIndexedTexts)`,
	},
	{
		"postgres, access: conditions let through what is hidden", "apiserver/store/postgres/sqlplan/compiler.go",
		`where + " AND " + visible, err`, `where + " AND (TRUE OR " + visible + ")", err`,
	},
	{
		"postgres, including: everything goes on from what is included", "apiserver/store/postgres/include.go",
		`len(from) > 0; depth++ {`, `len(from) > 0; depth += 0 {`,
	},
	{
		"postgres, paging: the last record of a page is on the next one too", "apiserver/store/postgres/sqlplan/ranking.go",
		`condition = never`, `condition = always`,
	},
	{
		"postgres, sorting: of a range with two ends only the last part is walked", "apiserver/store/postgres/sqlplan/by_scan.go",
		`ranges = append(ranges, start+in+end)`, `ranges = append(ranges[:0], start+in+end)`,
	},
	{
		"postgres, sorting: the first value counts in either direction", "apiserver/store/postgres/indexrow/indexer.go",
		`if descending {`, `if false && descending {`,
	},
}

// TestPlantedFaults plants each fault in a build of this package, and sees that the
// random queries find it.
func TestPlantedFaults(t *testing.T) {
	if !*planted {
		t.Skip("takes minutes: run with -planted")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			scratch := t.TempDir()
			binary := filepath.Join(scratch, "planted.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay(t, root, scratch, f), "-o", binary, ".")
			if output, err := build.CombinedOutput(); err != nil {
				t.Fatalf("the fault cannot be built: %v\n%s", err, output)
			}
			run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestRandomQueries$/^"+f.engine()+"$", "-most", "1", "-queries", "20000")
			output, err := run.CombinedOutput()
			if err == nil {
				t.Fatal("the fault is not found")
			}
			if !strings.Contains(string(output), "1 wrong answers") {
				t.Fatalf("the random queries fail for another reason: %s", output)
			}
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			t.Log(strings.Join(lines[:min(3, len(lines))], "\n"))
		})
	}
}

// TestFaultsCanBePlanted plants each fault in a copy of its file, and compiles nothing.
func TestFaultsCanBePlanted(t *testing.T) {
	for _, f := range faults {
		if _, err := f.plant("../../.."); err != nil {
			t.Error(err)
		}
	}
}

// plant returns the text of the file with the fault.
func (f fault) plant(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.file)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		return "", fmt.Errorf("%s: %s has %q %d times; give a text that occurs once", f.name, f.file, f.old, n)
	}
	return strings.Replace(string(text), f.old, f.new, 1), nil
}

// overlay makes a file that tells the compiler to take a file with the fault.
func overlay(t *testing.T, root, scratch string, f fault) string {
	text, err := f.plant(root)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(scratch, "wrong.go")
	if err := os.WriteFile(wrong, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, filepath.FromSlash(f.file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(path, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
