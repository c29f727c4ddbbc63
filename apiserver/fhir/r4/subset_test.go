package r4

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendSubset(t *testing.T) {
	tests := map[string]struct {
		resource, typeName string
		elements           []string
		want               string
	}{
		"a named element and its primitive extension": {
			resource: `{"resourceType":"Patient", "id":"1", "meta":{"versionId":"1"}, "birthDate" : "2020" , "_birthDate":{"id":"x"}, "gender":"male"}`,
			typeName: "Patient",
			elements: []string{"birthDate"},
			want:     `{"resourceType":"Patient","id":"1","meta":{"versionId":"1","tag":[` + subsettedTag + `]},"birthDate":"2020","_birthDate":{"id":"x"}}`,
		},
		"tags are kept": {
			resource: `{"resourceType":"Patient","id":"1","meta":{"tag":[ {"code":"a"} ],"source":"#s"}}`,
			typeName: "Patient",
			want:     `{"resourceType":"Patient","id":"1","meta":{"tag":[` + subsettedTag + `, {"code":"a"} ],"source":"#s"}}`,
		},
		"no tags": {
			resource: `{"resourceType":"Patient","id":"1","meta":{"tag":[ ]}}`,
			typeName: "Patient",
			want:     `{"resourceType":"Patient","id":"1","meta":{"tag":[` + subsettedTag + ` ]}}`,
		},
		"choice elements": {
			resource: `{"resourceType":"Patient","meta":{},"deceasedDateTime":"2020","_deceasedDateTime":{},"deceasedReason":1,"multipleBirthInteger":2}`,
			typeName: "Patient",
			elements: []string{"deceased", "multipleBirthInteger"},
			want:     `{"resourceType":"Patient","meta":{"tag":[` + subsettedTag + `]},"deceasedDateTime":"2020","_deceasedDateTime":{},"multipleBirthInteger":2}`,
		},
		"what R4 requires and what modifies": {
			resource: `{"resourceType":"Endpoint","meta":{},"status":"active","name":"n","address":"a","payloadType":[],"connectionType":{},"implicitRules":"r","modifierExtension":[]}`,
			typeName: "Endpoint",
			elements: []string{"contact"},
			want:     `{"resourceType":"Endpoint","meta":{"tag":[` + subsettedTag + `]},"status":"active","address":"a","payloadType":[],"connectionType":{},"implicitRules":"r","modifierExtension":[]}`,
		},
		"bytes stay": {
			resource: `{"resourceType":"Patient","meta":{},"n\u0061me":[{"x":1.50}],"id":"1"}`,
			typeName: "Patient",
			elements: []string{"name"},
			want:     `{"resourceType":"Patient","meta":{"tag":[` + subsettedTag + `]},"n\u0061me":[{"x":1.50}],"id":"1"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := AppendSubset(nil, []byte(test.resource), test.typeName, test.elements)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := AppendSubset(nil, []byte(`{"a":`), "Patient", nil); err == nil {
		t.Error("a broken resource was taken apart")
	}
}
