// Package metricdocs finds the metrics that the code declares, for docs/reference/metrics.md.
package metricdocs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Metric is a metric as the code declares it.
type Metric struct {
	Name, Help, Type string
	Labels           []string
}

// constructor matches the functions of client_golang that make a metric from options, with or
// without labels.
var constructor = regexp.MustCompile(`^New(Counter|Gauge|Histogram)(Vec|Func)?$`)

// Find returns the metrics that code below the folders declares, sorted by name. It is an error if a
// name or help text is not a literal, or if labels are neither a literal nor a variable of the same
// file that is set to one.
func Find(folders ...string) ([]Metric, error) {
	var found []Metric
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			metrics, err := ofFile(file)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			found = append(found, metrics...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

func ofFile(file *ast.File) (found []Metric, err error) {
	lists := map[string]*ast.CompositeLit{} // by the names of variables
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				if list, ok := value.(*ast.CompositeLit); ok {
					lists[spec.Names[i].Name] = list
				}
			}
		}
		return true
	})
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		var metric Metric
		switch parts := constructor.FindStringSubmatch(function.Sel.Name); {
		case function.Sel.Name == "NewDesc" && len(call.Args) == 4:
			metric, err = ofDesc(call, lists)
		case parts != nil && len(call.Args) > 0 && isOptions(call.Args[0]):
			metric, err = ofOptions(parts, call, lists)
		default:
			return true
		}
		found = append(found, metric)
		return true
	})
	return found, err
}

func ofDesc(call *ast.CallExpr, lists map[string]*ast.CompositeLit) (m Metric, err error) {
	if m.Name, err = text(call.Args[0]); err != nil {
		return m, err
	}
	if m.Help, err = text(call.Args[1]); err != nil {
		return m, fmt.Errorf("%s: %w", m.Name, err)
	}
	if m.Labels, err = labels(call.Args[2], lists); err != nil {
		return m, fmt.Errorf("%s: %w", m.Name, err)
	}
	m.Type = "gauge"
	if strings.HasSuffix(m.Name, "_total") { // by convention, only counters have this suffix
		m.Type = "counter"
	}
	return m, nil
}

func isOptions(node ast.Expr) bool {
	literal, ok := node.(*ast.CompositeLit)
	if !ok {
		return false
	}
	kind, ok := literal.Type.(*ast.SelectorExpr)
	return ok && strings.HasSuffix(kind.Sel.Name, "Opts")
}

func ofOptions(parts []string, call *ast.CallExpr, lists map[string]*ast.CompositeLit) (m Metric, err error) {
	m.Type = strings.ToLower(parts[1])
	for _, element := range call.Args[0].(*ast.CompositeLit).Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch fmt.Sprint(pair.Key) {
		case "Name":
			m.Name, err = text(pair.Value)
		case "Help":
			m.Help, err = text(pair.Value)
		}
		if err != nil {
			return m, err
		}
	}
	if parts[2] == "Vec" {
		m.Labels, err = labels(call.Args[1], lists)
	}
	return m, err
}

func text(node ast.Expr) (string, error) {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", fmt.Errorf("a metric's name and help must be literals")
	}
	return strconv.Unquote(literal.Value)
}

func labels(node ast.Expr, lists map[string]*ast.CompositeLit) ([]string, error) {
	if name, ok := node.(*ast.Ident); ok {
		if name.Name == "nil" {
			return nil, nil
		}
		if list := lists[name.Name]; list != nil {
			node = list
		}
	}
	list, ok := node.(*ast.CompositeLit)
	if !ok {
		return nil, fmt.Errorf("a metric's labels must be a literal, or a variable of the same file")
	}
	var names []string
	for _, element := range list.Elts {
		name, err := text(element)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
