package r4

import (
	"fmt"
)

// step is one step of a path in a resource: the index of an element among those of its type, and
// the index of a repetition or -1. It has no pointers, because there can be many steps.
type step struct {
	typ  typeIndex
	row  uint16
	item int32
}

// appendSteps appends the path to the current element.
func (r *reader) appendSteps(steps []step) []step {
	for i := range r.depth {
		if f := &r.frames[i]; f.at != nil {
			_, row := lookupRow(f.typ, []byte(f.at.name))
			steps = append(steps, step{f.typ, row, int32(f.item)})
		}
	}
	return steps
}

// pathOf returns steps from the resource as FHIRPath.
func (r *reader) pathOf(steps []step) string {
	path := []byte(r.opts.Type)
	for _, s := range steps {
		e := &types[s.typ].elements[s.row]
		path = appendElement(path, e.base())
		if e.isChoice() {
			path = append(append(append(path, ".ofType("...), types[e.typ].name...), ')')
		}
		if s.item >= 0 {
			path = appendIndex(path, int(s.item))
		}
	}
	return string(path)
}

// here returns the path to the current element as FHIRPath.
func (r *reader) here() string {
	path := r.pathOf(r.appendSteps(nil))
	if r.depth > 0 && r.frames[r.depth-1].other != nil {
		return string(appendElement([]byte(path), *r.frames[r.depth-1].other))
	}
	return path
}

// report adds an error about the current element. It returns false if no more issues can be added.
func (r *reader) report(kind IssueType, code, diagnostics string) bool {
	return r.reportAt(kind, code, r.here(), diagnostics)
}

// reportBelow adds an error about a member of the current element.
func (r *reader) reportBelow(member string, kind IssueType, code, diagnostics string) bool {
	return r.reportAt(kind, code, string(appendElement([]byte(r.here()), member)), diagnostics)
}

// reportAt adds an error about an expression. It returns false if no more issues can be added.
func (r *reader) reportAt(kind IssueType, code, expression, diagnostics string) bool {
	return r.add(Issue{Severity: SeverityError, Type: kind, Code: code, Diagnostics: diagnostics, Expression: expression})
}

func (r *reader) add(issue Issue) bool {
	if len(r.issues) == maxIssues {
		r.issues[maxIssues-1] = Issue{
			Severity: SeverityError, Type: IssueStructure, Code: CodeTooManyIssues,
			Diagnostics: fmt.Sprintf("the body has more than %d issues; correct those that are listed to see the rest", maxIssues-1),
		}
		return false
	}
	r.issues = append(r.issues, issue)
	return true
}
