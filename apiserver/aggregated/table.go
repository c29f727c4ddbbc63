package aggregated

import (
	"context"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
)

// table has the columns of a kind between name and version, as kubectl get prints it.
type table []column

type column struct {
	name, description string
	// wide reports whether the column is only printed with -o wide.
	wide bool
	cell cell
}

// tables has an entry for each kind.
var tables = map[string]table{
	"Device":                  deviceTable,
	"DeviceDefinition":        deviceDefinitionTable,
	"DeviceMetric":            deviceMetricTable,
	"Endpoint":                endpointTable,
	"Group":                   groupTable,
	"HealthcareService":       healthcareServiceTable,
	"Location":                locationTable,
	"Organization":            organizationTable,
	"OrganizationAffiliation": organizationAffiliationTable,
	"Patient":                 patientTable,
	"Person":                  personTable,
	"Practitioner":            practitionerTable,
	"PractitionerRole":        practitionerRoleTable,
	"RelatedPerson":           relatedPersonTable,
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
		answer.ColumnDefinitions = r.table.definitions()
	}
	var err error
	answer.Rows, err = metatable.MetaToTableRow(object, func(object runtime.Object, meta metav1.Object, name, age string) ([]any, error) {
		cells := append([]any{name}, r.table.cells(object.(r4v1.Object).GetSpec())...)
		return append(cells, meta.GetGeneration(), age), nil
	})
	return answer, err
}

func (t table) definitions() []metav1.TableColumnDefinition {
	all := []metav1.TableColumnDefinition{nameColumn}
	for _, c := range t {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string", Description: c.description}
		if c.wide {
			definition.Priority = 1
		}
		all = append(all, definition)
	}
	return append(all, versionColumn, ageColumn)
}

func (t table) cells(spec []byte) []any {
	resource := elementsOf(spec)
	cells := make([]any, len(t))
	for i, c := range t {
		cells[i] = c.cell(resource)
	}
	return cells
}
