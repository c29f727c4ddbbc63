package colocationtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// plan is a node of a plan as EXPLAIN (FORMAT JSON, VERBOSE) prints it.
type plan struct {
	NodeType     string   `json:"Node Type"`
	Relationship string   `json:"Parent Relationship"`
	Subplan      string   `json:"Subplan Name"`
	Relation     string   `json:"Relation Name"`
	Alias        string   `json:"Alias"`
	Operation    string   `json:"Operation"`
	Output       []string `json:"Output"`
	IndexCond    string   `json:"Index Cond"`
	RecheckCond  string   `json:"Recheck Cond"`
	Filter       string   `json:"Filter"`
	HashCond     string   `json:"Hash Cond"`
	MergeCond    string   `json:"Merge Cond"`
	JoinFilter   string   `json:"Join Filter"`
	Plans        []plan   `json:"Plans"`
}

// explain returns the plan that Postgres makes of a statement for all values of its parameters.
func explain(ctx context.Context, conn *pgx.Conn, sql string) (plan, error) {
	// The arguments are NULL, which is in the range of no partition, so Postgres would drop all
	// partitions from the plan.
	if _, err := conn.Exec(ctx, "SET enable_partition_pruning = off"); err != nil {
		return plan{}, err
	}
	const name = "colocation"
	prepared, err := conn.Prepare(ctx, name, sql)
	if err != nil {
		return plan{}, err
	}
	defer func() { _ = conn.Deallocate(ctx, name) }() // the next Prepare reports that the name is taken
	arguments := ""
	if n := len(prepared.ParamOIDs); n > 0 {
		arguments = "(" + strings.TrimSuffix(strings.Repeat("NULL,", n), ",") + ")"
	}
	var text []byte
	query := "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) EXECUTE " + name + arguments
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		return plan{}, err
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		return plan{}, err
	}
	return plans[0].Plan, nil
}

// walk is the state of a walk through a plan.
type walk struct {
	tables map[string]bool
	// sites are the expressions that are compared with, or inserted into, columns site.
	sites map[string]bool
	// ofOneSite are the aliases of the scans that have a condition with such an expression.
	ofOneSite map[string]bool
	found     []Finding
}

func (w *walk) add(format string, args ...any) {
	w.found = append(w.found, Finding{Text: fmt.Sprintf(format, args...)})
}

// A site is given by a parameter of the statement ($1), or by the result of a subquery that Postgres
// evaluates first ($0). The text of a plan has the same form for both.
var parameter = regexp.MustCompile(`^\(?\$\d+\)?$`)

// unnamed is the end of the name of a subquery's column that is an expression without a name, such as
// a parameter.
const unnamed = `."?column?"`

// visit adds what is wrong with a node and the nodes below it. joins are the conditions of the joins
// above it.
func (w *walk) visit(p plan, joins string) {
	switch {
	case p.Operation == "Insert" && w.tables[p.Relation]:
		w.checkInserted(p)
	case p.NodeType != "ModifyTable" && w.tables[p.Relation]:
		w.checkScanned(p, joins)
	}
	joins += " " + p.HashCond + " " + p.MergeCond + " " + p.JoinFilter
	for _, below := range p.Plans {
		w.visit(below, joins+hashed(p, below))
	}
}

// hashed returns the conditions of a subquery that Postgres evaluates once, for all rows, into a hash
// table. The columns by which Postgres looks up a row are those of the subquery.
func hashed(p, below plan) string {
	if below.Subplan == "" || !strings.Contains(p.Filter+strings.Join(p.Output, " "), "hashed "+below.Subplan) {
		return ""
	}
	var conditions string
	for _, column := range below.Output {
		conditions += " " + column + " = hashed"
	}
	return conditions
}

// checkScanned checks that a scan of a table has a condition on the site.
func (w *walk) checkScanned(p plan, joins string) {
	column := `\b` + regexp.QuoteMeta(p.Alias) + `\.site`
	equal := regexp.MustCompile(column + ` = ([^ )]+)|([^ (]+) = ` + column + `\b`)
	var several string
	for _, condition := range equal.FindAllStringSubmatch(strings.Join([]string{p.IndexCond, p.RecheckCond, p.Filter, joins}, " "), -1) {
		if site := condition[1] + condition[2]; parameter.MatchString(site) {
			w.sites[strings.Trim(site, "()")] = true
			w.ofOneSite[p.Alias] = true
			return
		} else if other, ok := strings.CutSuffix(site, ".site"); ok && w.ofOneSite[other] { // the outer side of a join is visited first
			w.ofOneSite[p.Alias] = true
			return
		}
		several = condition[1] + condition[2]
	}
	if several != "" {
		w.found = append(w.found, Finding{Text: fmt.Sprintf("%s is read for each site of %s", p.Relation, several), EachSite: true})
		return
	}
	w.add("%s %s is read without a condition on site", p.Relation, p.Alias)
}

// checkInserted checks that inserted rows have the site of the statement. Their first column is the site,
// as a test of the tables shows.
func (w *walk) checkInserted(p plan) {
	for _, rows := range p.Plans {
		if rows.Relationship != "Outer" || len(rows.Output) == 0 {
			continue
		}
		site := rows.Output[0]
		// The site is the first column of the subquery too.
		if rows.NodeType == "Subquery Scan" && strings.HasSuffix(site, unnamed) && len(rows.Plans) > 0 && len(rows.Plans[0].Output) > 0 {
			site = rows.Plans[0].Output[0]
		}
		switch {
		case parameter.MatchString(site):
			w.sites[strings.Trim(site, "()")] = true
		case !strings.HasSuffix(site, ".site"): // a scan of which checkScanned knows the site
			w.add("rows with site %s are inserted into %s", site, p.Relation)
		}
	}
}
