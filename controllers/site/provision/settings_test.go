package provision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestResources(t *testing.T) {
	type amounts struct{ CPU, Memory, CPULimit, MemoryLimit, Buffers string }
	tests := map[string]struct {
		given string
		want  amounts
	}{
		"nothing":                 {`{}`, amounts{"100m", "256Mi", "0", "1Gi", "256MB"}},
		"a limit of memory":       {`{limits: {memory: 8Gi}}`, amounts{"100m", "2Gi", "0", "8Gi", "2048MB"}},
		"a small limit of memory": {`{limits: {memory: 128Mi}}`, amounts{"100m", "128Mi", "0", "128Mi", "32MB"}},
		"little memory for sure":  {`{requests: {memory: 512Mi}, limits: {memory: 8Gi}}`, amounts{"100m", "512Mi", "0", "8Gi", "512MB"}},
		"more than the limit":     {`{requests: {memory: 2Gi}}`, amounts{"100m", "2Gi", "0", "2Gi", "512MB"}},
		"a small limit of CPU":    {`{limits: {cpu: 50m}}`, amounts{"50m", "256Mi", "50m", "1Gi", "256MB"}},
		"all":                     {`{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 4Gi}}`, amounts{"1", "1Gi", "2", "4Gi", "1024MB"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := readSite(t, "testdata/statefulset-defaults.in.yaml").Spec.Storage.Postgres.Provisioned
			spec.Resources = v1alpha1.Resources{}
			if err := yaml.UnmarshalStrict([]byte(tt.given), &spec.Resources); err != nil {
				t.Fatal(err)
			}
			r := resources(spec.Resources)
			got := amounts{
				r.Requests.Cpu().String(), r.Requests.Memory().String(), r.Limits.Cpu().String(), r.Limits.Memory().String(),
				settings(spec)["shared_buffers"],
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("amounts (-want +got):\n%s", diff)
			}
		})
	}
}
