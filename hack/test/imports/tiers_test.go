package imports

import (
	"regexp"
	"slices"
	"testing"
)

// starters are the packages that start server processes: a control plane, a node, Postgres, an
// issuer of tokens, Paddock itself.
var starters = []string{
	module + "/hack/dev/localcluster", module + "/hack/dev/localissuer", module + "/hack/dev/localnode",
	module + "/hack/dev/localpaddock", module + "/hack/dev/localpostgres", module + "/hack/dev/localregistry",
}

// suiteFile matches the name of the file by which the Makefile finds the packages of a target.
var suiteFile = regexp.MustCompile(`^suite_(.*)_test\.go$`)

// TestTiers checks that a package whose tests start server processes has exactly one file
// suite_<target>_test.go, which names the target of the Makefile that runs them.
func TestTiers(t *testing.T) {
	targets := []string{"integration", "robustness", "clients", "e2e", "release"}
	files := list(t, `{{.ImportPath}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}`)
	imports := list(t, `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`)
	dependencies := listDependencies(t)
	isStarter := func(pkg string) bool { return matches(pkg, starters) }
	startsServers := func(imported string) bool {
		return isStarter(imported) || slices.ContainsFunc(dependencies[imported], isStarter)
	}
	for pkg, names := range files {
		var named []string
		for _, name := range names {
			if match := suiteFile.FindStringSubmatch(name); match != nil {
				named = append(named, match[1])
			}
		}
		switch {
		case len(named) > 1:
			t.Errorf("%s has suite files of the targets %v, want one", pkg, named)
		case len(named) == 1 && !slices.Contains(targets, named[0]):
			t.Errorf("%s has a suite file of the target %q, want one of %v", pkg, named[0], targets)
		case len(named) == 0 && len(names) > 0 && (isStarter(pkg) || slices.ContainsFunc(imports[pkg], startsServers)):
			t.Errorf("%s has tests that start server processes, but no file suite_<target>_test.go with one of the targets %v", pkg, targets)
		}
	}
}
