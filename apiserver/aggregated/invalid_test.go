package aggregated

import "testing"

func TestFieldOf(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                  "spec",
		"Patient":                           "spec",
		"Patient.name[0].use":               "spec.name[0].use",
		"Patient.deceased.ofType(dateTime)": "spec.deceasedDateTime",
		"Device.extension[0].value.ofType(Coding).code": "spec.extension[0].valueCoding.code",
		"Patient.`first-name`":                          "spec.first-name",
	} {
		if got := fieldOf(expression); got != want {
			t.Errorf("fieldOf(%q): got %q, want %q", expression, got, want)
		}
	}
}
