// Package imports keeps the rules of who may import whom.
package imports

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const (
	module = "github.com/paddock-health/paddock"
	// foldedTexts is how privacy rules, which all APIs apply, compare texts.
	foldedTexts = module + "/apiserver/fhir/search/fold"
)

// rule forbids the packages below from to depend, directly or not, on others.
type rule struct {
	from []string
	not  []string
	// except are dependencies allowed all the same.
	except []string
}

var (
	httpPackages      = []string{"net/http"}
	kubernetesClients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	engines           = []string{module + "/apiserver/store/cluster", module + "/apiserver/store/postgres"}
	// partsOfEngines can be had without the engine: what a database needs before it serves.
	partsOfEngines = []string{module + "/apiserver/store/postgres/schema", module + "/apiserver/store/postgres/dsn"}
	// settingsTypes are what the settings of a Site consist of: the API types, which are data.
	settingsTypes = []string{module + "/api/v1alpha1", "k8s.io/apimachinery", "k8s.io/klog", "k8s.io/kube-openapi", "k8s.io/utils"}
)

var rules = map[string]rule{
	"the API types import apimachinery only": {
		from: []string{"api"}, not: append([]string{module, "k8s.io/api/", "k8s.io/apiserver"}, kubernetesClients...),
		except: []string{module + "/api"},
	},
	"the FHIR tables are pure": {
		from: []string{"apiserver/fhir/r4"},
		not:  slices.Concat(httpPackages, kubernetesClients, []string{"k8s.io", module + "/apiserver/store"}),
	},
	"the reader of JSON objects is pure": {
		from: []string{"apiserver/jsonwalk"}, not: append([]string{module, "k8s.io"}, httpPackages...),
	},
	"the demo clinic is data and the paths to which it is written": {
		from: []string{"apiserver/clinic"}, not: slices.Concat(kubernetesClients, engines, []string{module, "k8s.io"}),
		except: []string{module + "/apiserver/clinic"},
	},
	"the query language and the extraction are pure": {
		from: []string{"apiserver/fhir/search", "apiserver/fhir/search/extract", "apiserver/fhir/search/fold"},
		not:  slices.Concat(httpPackages, kubernetesClients, []string{"k8s.io"}, engines),
	},
	"what checks references is for every API": {
		from: []string{"apiserver/fhir/integrity"}, not: slices.Concat(httpPackages, kubernetesClients, []string{"k8s.io"}, engines),
	},
	"the storage contract knows no engine and no cluster": {
		from: []string{"apiserver/store"}, not: slices.Concat(engines, kubernetesClients, []string{"k8s.io"}),
	},
	"batches of calls know nothing of ours": {
		from: []string{"apiserver/store/batcher"}, not: slices.Concat([]string{"github.com/jackc/pgx", "k8s.io", module}, httpPackages),
	},
	"index rows and plans of searches know no connection and not the engine that uses them": {
		from:   []string{"apiserver/store/postgres/indexrow", "apiserver/store/postgres/sqlplan"},
		not:    slices.Concat([]string{"github.com/jackc/pgx", "k8s.io"}, httpPackages, kubernetesClients, engines),
		except: []string{module + "/apiserver/store/postgres/indexrow"},
	},
	"what is indexed of records knows no engine and no cluster": {
		from: []string{"apiserver/extraction"}, not: slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/apiserver/sites", module + "/api"}), except: settingsTypes,
	},
	"the facades know no engine and no cluster": {
		from: []string{"apiserver/fhir", "apiserver/ahds"},
		not:  slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/apiserver/sites", module + "/api"}), except: settingsTypes,
	},
	"the settings of a Site are data, and so are its limits": {
		from: []string{"apiserver/settings", "apiserver/limits"}, not: slices.Concat(engines, kubernetesClients, []string{"k8s.io"}), except: settingsTypes,
	},
	"what the facades share of HTTP knows no facade, no engine and no cluster": {
		from:   []string{"apiserver/web"},
		not:    slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/apiserver/fhir", module + "/apiserver/ahds", module + "/apiserver/aggregated"}),
		except: append([]string{foldedTexts}, settingsTypes...),
	},
	"the native format knows no engine, no cluster and no facade": {
		from:   []string{"apiserver/native"},
		not:    slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/apiserver/sites", module + "/apiserver/fhir", module + "/apiserver/ahds", module + "/apiserver/aggregated", module + "/api"}),
		except: append([]string{foldedTexts}, settingsTypes...),
	},
	"what copies records from storage to storage knows no engine, no cluster and no HTTP": {
		from: []string{"apiserver/move"}, not: slices.Concat(httpPackages, engines, kubernetesClients, []string{"k8s.io", module + "/api"}),
	},
	"the aggregated API knows no engine": {
		from: []string{"apiserver/aggregated"}, not: engines,
	},
	"the aggregated API knows no facade": {
		from: []string{"apiserver/aggregated"}, not: []string{module + "/apiserver/fhir", module + "/apiserver/ahds"},
		// What FHIR says of bodies and of references is for every API.
		except: []string{module + "/apiserver/fhir/r4", module + "/apiserver/fhir/integrity", foldedTexts},
	},
	"the facades do not know each other: FHIR": {
		from: []string{"apiserver/fhir"}, not: []string{module + "/apiserver/ahds", module + "/apiserver/aggregated"},
	},
	"the facades do not know each other: AHDS": {
		from: []string{"apiserver/ahds"}, not: []string{module + "/apiserver/fhir", module + "/apiserver/aggregated"}, except: []string{foldedTexts},
	},
	"codes of errors, suggestions and figures of requests are pure": {
		from: []string{"apiserver/errorcode", "apiserver/suggest", "apiserver/traffic"}, not: append([]string{module, "k8s.io"}, httpPackages...),
	},
	"what describes the APIs knows no engine and no cluster": {
		from: []string{"apiserver/openapi", "apiserver/portal"},
		not:  slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/apiserver/sites", module + "/api"}), except: settingsTypes,
	},
	"the reader of the OpenAPI document is pure": {
		from: []string{"apiserver/portal/reference"}, not: append([]string{module, "k8s.io"}, httpPackages...),
	},
	"the console is a client of the APIs and knows nothing behind them": {
		from: []string{"apiserver/console"}, not: []string{module, "k8s.io", "sigs.k8s.io"},
	},
	"what sends events knows no engine and no cluster": {
		from: []string{"apiserver/delivery", "apiserver/events/signing"},
		not:  slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/api"}),
	},
	"what forwards deliveries on a developer's machine knows no engine and no cluster": {
		from: []string{"cmd/listen/relay"}, not: slices.Concat(engines, kubernetesClients, []string{"k8s.io", module + "/api", module + "/apiserver/store"}),
	},
	"what makes texts safe for terminals is pure": {
		from: []string{"cmd/listen/terminal"}, not: append([]string{module, "k8s.io"}, httpPackages...),
	},
	// The plugin uses what users can use: the custom resources and the HTTP APIs.
	"kubectl-paddock imports no program": {
		from: []string{"cmd/kubectl-paddock"}, not: []string{module + "/apiserver", module + "/controllers", "sigs.k8s.io/controller-runtime"},
		except: []string{module + "/apiserver/events/signing", module + "/apiserver/clinic"},
	},
	"what kubectl-paddock sends to sites and packs into reports knows no cluster": {
		from: []string{"cmd/kubectl-paddock/siteapi", "cmd/kubectl-paddock/bundle", "cmd/kubectl-paddock/bulk", "cmd/kubectl-paddock/backup", "cmd/kubectl-paddock/sandbox"},
		not:  slices.Concat(kubernetesClients, []string{"github.com/spf13/cobra"}),
	},
	"what records accesses knows no engine and no cluster": {
		from: []string{"apiserver/audit"}, not: slices.Concat(engines, kubernetesClients, []string{"k8s.io"}),
	},
	"what makes events is pure": {
		from: []string{"apiserver/events"}, not: slices.Concat(httpPackages, kubernetesClients, []string{"k8s.io", module + "/api"}, engines),
	},
	"what decides access knows no cluster": {
		from: []string{"apiserver/access"}, not: slices.Concat(kubernetesClients, []string{"k8s.io"}),
	},
	"scopes are pure": {
		from:   []string{"apiserver/access/smart"},
		not:    slices.Concat(httpPackages, kubernetesClients, engines, []string{"k8s.io", module + "/apiserver/store", module + "/apiserver/fhir"}),
		except: []string{module + "/apiserver/fhir/r4"},
	},
	"tokens of issuers are verified without the cluster": {
		from: []string{"apiserver/access/oidc", "apiserver/access/oidc/discovery"},
		not:  slices.Concat(kubernetesClients, engines, []string{"k8s.io/api", module + "/api"}),
	},
	"controllers do not import the API server": {
		from: []string{"controllers"}, not: []string{module + "/apiserver"},
		except: append([]string{module + "/apiserver/egress", module + "/apiserver/access/oidc/discovery", module + "/apiserver/events/signing"}, partsOfEngines...),
	},
	"the API server does not import controllers": {
		from: []string{"apiserver"}, not: []string{module + "/controllers"},
	},
}

// subtrees are the rules' packages that are taken with all below them; of the
// others only the package itself is meant.
var subtrees = []string{"api", "controllers", "apiserver", "apiserver/aggregated", "cmd/kubectl-paddock"}

func TestImports(t *testing.T) {
	dependencies := listDependencies(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			for pkg, imports := range dependencies {
				if !applies(r, strings.TrimPrefix(pkg, module+"/")) {
					continue
				}
				for _, dependency := range imports {
					if matches(dependency, r.not) && !matches(dependency, r.except) && dependency != pkg {
						t.Errorf("%s depends on %s", pkg, dependency)
					}
				}
			}
		})
	}
}

// TestDependenciesAreJustified compares the direct dependencies with their list.
func TestDependenciesAreJustified(t *testing.T) {
	listed, err := os.ReadFile("../../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, required := range mod.Require {
		if !required.Indirect {
			direct[required.Mod.Path] = true
			if !strings.Contains(string(listed), "| "+required.Mod.Path+" |") {
				t.Errorf("docs/dependencies.md does not say what %s is for", required.Mod.Path)
			}
		}
	}
	for line := range strings.Lines(string(listed)) {
		path := strings.TrimSpace(strings.SplitN(strings.TrimPrefix(line, "|"), "|", 2)[0])
		if strings.Contains(path, ".") && strings.HasPrefix(line, "|") && !direct[path] {
			t.Errorf("docs/dependencies.md lists %s, which is no direct dependency", path)
		}
	}
}

// TestEnginesAreConstructedInOnePlace keeps engines out of everything but their
// opener and the commands.
func TestEnginesAreConstructedInOnePlace(t *testing.T) {
	for pkg, imports := range listImports(t) {
		opener := pkg == module+"/apiserver/sites" || strings.HasPrefix(pkg, module+"/cmd/") || strings.HasPrefix(pkg, module+"/hack/")
		for _, imported := range imports {
			if matches(imported, engines) && !matches(imported, partsOfEngines) && !opener && !matches(pkg, engines) {
				t.Errorf("%s imports the engine %s", pkg, imported)
			}
		}
	}
}

// TestServerIsImportedByItsCommand keeps apiserver/server, which wires all APIs, at the top.
func TestServerIsImportedByItsCommand(t *testing.T) {
	const server, command = module + "/apiserver/server", module + "/cmd/apiserver"
	packages := listImports(t)
	if packages[server] == nil {
		t.Fatalf("go list did not find %s", server)
	}
	for pkg, imports := range packages {
		if pkg != command && slices.Contains(imports, server) {
			t.Errorf("%s imports %s", pkg, server)
		}
	}
}

func applies(r rule, pkg string) bool {
	return slices.ContainsFunc(r.from, func(from string) bool {
		return pkg == from || slices.Contains(subtrees, from) && strings.HasPrefix(pkg, from+"/")
	})
}

func matches(pkg string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return pkg == prefix || strings.HasPrefix(pkg, strings.TrimSuffix(prefix, "/")+"/")
	})
}

func listDependencies(t *testing.T) map[string][]string {
	return list(t, `{{.ImportPath}} {{join .Deps " "}}`)
}

func listImports(t *testing.T) map[string][]string {
	return list(t, `{{.ImportPath}} {{join .Imports " "}}`)
}

func list(t *testing.T, format string) map[string][]string {
	t.Helper()
	output, err := exec.Command("go", "list", "-f", format, module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		packages[fields[0]] = fields[1:]
	}
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages", len(packages))
	}
	if packages[module+"/apiserver/fhir"] == nil {
		t.Fatal("go list did not find apiserver/fhir: the rules name folders that do not exist")
	}
	return packages
}
