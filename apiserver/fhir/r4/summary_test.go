package r4

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

func TestAppendSummary(t *testing.T) {
	const meta = `"meta":{"tag":[` + subsettedTag + `]}`
	tests := map[string]struct {
		resource, typeName, want, data string
	}{
		"what is at the top": {
			typeName: "Patient",
			resource: `{"resourceType":"Patient","id":"1","meta":{},"text":{"status":"generated"},"active":true,"name":[{"family":"F","extension":[{"url":"u","valueDecimal":1.50}]}],"photo":[{"title":"t"}],"contact":[{"gender":"male"}]}`,
			want:     `{"resourceType":"Patient","id":"1",` + meta + `,"active":true,"name":[{"family":"F","extension":[{"url":"u","valueDecimal":1.50}]}]}`,
			data:     `{"resourceType":"Patient","id":"1",` + meta + `,"active":true,"name":[{"family":"F","extension":[{"url":"u","valueDecimal":1.50}]}],"photo":[{"title":"t"}],"contact":[{"gender":"male"}]}`,
		},
		"what is inside": {
			typeName: "Device",
			resource: `{"resourceType":"Device","meta":{},"udiCarrier":[{"id":"u","deviceIdentifier":"d","issuer":"http://i","_issuer":{"id":"x"},"carrierHRF":"h"},{"entryType":"rfid"}]}`,
			want:     `{"resourceType":"Device",` + meta + `,"udiCarrier":[{"id":"u","deviceIdentifier":"d","carrierHRF":"h"}]}`,
			data:     `{"resourceType":"Device",` + meta + `,"udiCarrier":[{"id":"u","deviceIdentifier":"d","issuer":"http://i","_issuer":{"id":"x"},"carrierHRF":"h"},{"entryType":"rfid"}]}`,
		},
		"nothing is left": {
			typeName: "Device",
			resource: `{"resourceType":"Device","meta":{},"udiCarrier":[{"entryType":"rfid"}],"url":"u"}`,
			want:     `{"resourceType":"Device",` + meta + `}`,
			data:     `{"resourceType":"Device",` + meta + `,"udiCarrier":[{"entryType":"rfid"}],"url":"u"}`,
		},
		"what would be large": {
			typeName: "HealthcareService",
			resource: `{"resourceType":"HealthcareService","meta":{},"photo":{"contentType":"image/png","data":"AAAA","title":"t"}}`,
			want:     `{"resourceType":"HealthcareService",` + meta + `,"photo":{"contentType":"image/png","title":"t"}}`,
			data:     `{"resourceType":"HealthcareService",` + meta + `,"photo":{"contentType":"image/png","data":"AAAA","title":"t"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for want, take := range map[string]func(dst, resource []byte, typeName string) ([]byte, error){
				test.want: AppendSummary, test.data: AppendData,
			} {
				got, err := take(nil, []byte(test.resource), test.typeName)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for _, broken := range []string{`{"a":`, `{"name":[`, `{"name":[{`} {
		if _, err := AppendSummary(nil, []byte(broken), "Patient"); err == nil {
			t.Errorf("%s was taken apart", broken)
		}
	}
}

// TestSummariesAreValid takes the parts of HL7's examples.
func TestSummariesAreValid(t *testing.T) {
	path, err := examples.Fetch(t.Context(), filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kind := range Types {
		names = append(names, kind.Name)
	}
	all, err := examples.Load(path, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range all {
		for _, take := range []func(dst, resource []byte, typeName string) ([]byte, error){AppendSummary, AppendData} {
			part, err := take(nil, example.JSON, example.Type)
			if err != nil {
				t.Fatalf("%s/%s: %v", example.Type, example.ID, err)
			}
			if _, err := Read(part, Options{Type: example.Type}); err != nil {
				t.Errorf("%s/%s: %v: %s", example.Type, example.ID, err, part)
			}
		}
	}
}
