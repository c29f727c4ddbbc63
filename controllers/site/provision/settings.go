package provision

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const megabyte = 1 << 20

// Default resources of an instance.
var (
	defaultCPU    = resource.MustParse("100m")
	defaultMemory = resource.MustParse("256Mi")
	memoryLimit   = resource.MustParse("1Gi")
)

// resources returns the resources of a container: those of the Site, and defaults for missing ones
// that do not contradict them.
func resources(r v1alpha1.Resources) corev1.ResourceRequirements {
	limits := corev1.ResourceList{corev1.ResourceMemory: larger(memoryLimit, r.Requests.Memory)}
	if r.Limits.Memory != nil {
		limits[corev1.ResourceMemory] = *r.Limits.Memory
	}
	quarter := resource.NewQuantity(limits.Memory().Value()/4, resource.BinarySI)
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    smaller(defaultCPU, r.Limits.CPU),
		corev1.ResourceMemory: smaller(larger(defaultMemory, quarter), r.Limits.Memory),
	}
	if r.Limits.CPU != nil {
		limits[corev1.ResourceCPU] = *r.Limits.CPU
	}
	if r.Requests.CPU != nil {
		requests[corev1.ResourceCPU] = *r.Requests.CPU
	}
	if r.Requests.Memory != nil {
		requests[corev1.ResourceMemory] = *r.Requests.Memory
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func larger(a resource.Quantity, b *resource.Quantity) resource.Quantity {
	if b != nil && b.Cmp(a) > 0 {
		return *b
	}
	return a
}

func smaller(a resource.Quantity, b *resource.Quantity) resource.Quantity {
	if b != nil && b.Cmp(a) < 0 {
		return *b
	}
	return a
}

// settings returns the settings of postgresql.conf that differ from the defaults.
func settings(spec *v1alpha1.ProvisionedPostgres) map[string]string {
	need := resources(spec.Resources)
	memory, sure := need.Limits.Memory().Value()/megabyte, need.Requests.Memory().Value()/megabyte
	volume := spec.Storage.Size.Value() / megabyte
	return map[string]string{
		// PostgreSQL manual, 19.4.1: a quarter of the memory, here of the limit, but not more than the
		// request. The page cache uses the rest.
		"shared_buffers":       fmt.Sprintf("%dMB", min(memory/4, sure)),
		"effective_cache_size": fmt.Sprintf("%dMB", memory*3/4),
		// Fewer checkpoints, within the space of the volume.
		"max_wal_size":    fmt.Sprintf("%dMB", min(2048, volume/4)),
		"wal_compression": "on",
		// Statements are short, and their plans are known, so JIT does not help.
		"jit": "off",
		// Vacuum runs earlier than by default, because tables are large, and dead rows slow down each
		// index scan.
		"autovacuum_vacuum_scale_factor":  "0.05",
		"autovacuum_analyze_scale_factor": "0.02",
		// Locks of a client that has disappeared are released within a minute.
		"tcp_keepalives_idle":     "30",
		"tcp_keepalives_interval": "10",
		"tcp_keepalives_count":    "3",
	}
}

// arguments returns the settings as arguments of the server's command.
func arguments(settings map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
