package aggregated

import (
	"context"
	"encoding/json"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
)

// table is how a kind is shown to people: its own columns between the name and
// the version.
type table struct {
	columns []metav1.TableColumnDefinition
	// cells are the values of the columns, given a spec.
	cells func(spec json.RawMessage) []any
}

// tables has an entry for each kind that is served.
var tables = map[string]table{
	"Patient": patientTable,
}

var (
	nameColumn    = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "The id of the record, in lower case."}
	versionColumn = metav1.TableColumnDefinition{Name: "Version", Type: "integer", Format: "int64", Description: "The version of the record, as FHIR counts it."}
	ageColumn     = metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "How long ago the record was created."}
)

// ConvertToTable implements rest.TableConvertor.
func (r *resource) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	answer := &metav1.Table{}
	if list, ok := object.(metav1.ListInterface); ok {
		answer.SetContinue(list.GetContinue())
	} else if object, ok := object.(metav1.Object); ok {
		answer.SetResourceVersion(object.GetResourceVersion())
	}
	if chosen, ok := options.(*metav1.TableOptions); !ok || !chosen.NoHeaders {
		answer.ColumnDefinitions = append(append([]metav1.TableColumnDefinition{nameColumn}, r.table.columns...), versionColumn, ageColumn)
	}
	var err error
	answer.Rows, err = metatable.MetaToTableRow(object, func(object runtime.Object, meta metav1.Object, name, age string) ([]any, error) {
		cells := append([]any{name}, r.table.cells(object.(r4v1.Object).GetSpec())...)
		return append(cells, meta.GetGeneration(), age), nil
	})
	return answer, err
}
