package provision

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// The kinds of CloudNativePG that the controller writes, as of its release 1.25.
var (
	ClusterKind         = schema.GroupVersionKind{Group: "postgresql.cnpg.io", Version: "v1", Kind: "Cluster"}
	ScheduledBackupKind = schema.GroupVersionKind{Group: "postgresql.cnpg.io", Version: "v1", Kind: "ScheduledBackup"}
)

// AuthoritySecret returns the name of the Secret of CloudNativePG with the certificate authority of a
// Cluster, in ca.crt.
func AuthoritySecret(name string) string { return name + "-ca" }

const (
	defaultInstances = 3
	// statusPort is the port on which CloudNativePG's operator reads the status of instances.
	statusPort = 8000
)

func cloudNativePG(site *v1alpha1.Site, o Options) []client.Object {
	spec := site.Spec.Storage.Postgres.Provisioned
	meta := about(site, o)
	pods := metav1.LabelSelector{MatchLabels: map[string]string{"cnpg.io/cluster": meta.Name}}
	objects := []client.Object{
		networkPolicy(meta, o, pods, []networkingv1.NetworkPolicyIngressRule{
			{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &pods}}},
			{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(statusPort)), Protocol: ptr.To(corev1.ProtocolTCP)}}},
		}),
		object(ClusterKind, aboutData(site, o), cluster(spec, meta, o)),
	}
	if spec.Backup != nil {
		objects = append(objects, object(ScheduledBackupKind, meta, map[string]any{
			"schedule": spec.Backup.Schedule, "method": "volumeSnapshot",
			"cluster": map[string]any{"name": meta.Name},
			// Backups must remain when the Cluster is deleted.
			"backupOwnerReference": "none",
		}))
	}
	return objects
}

func cluster(spec *v1alpha1.ProvisionedPostgres, meta metav1.ObjectMeta, o Options) map[string]any {
	instances := instancesOf(spec)
	postgres := map[string]any{"parameters": anyOf(settings(spec))}
	if instances > 1 {
		// A write is acknowledged only when two instances have it.
		postgres["synchronous"] = map[string]any{"method": "any", "number": int64(1), "dataDurability": "required"}
	}
	services := []any{service(meta.Name, "rw")}
	if instances > 1 {
		services = append(services, service(replicaService(meta.Name), "ro"))
	}
	storage := map[string]any{"size": spec.Storage.Size.String()}
	if spec.Storage.StorageClassName != "" {
		storage["storageClass"] = spec.Storage.StorageClassName
	}
	need := resources(spec.Resources)
	label, value := o.owner()
	cluster := map[string]any{
		"instances": instances,
		"imageName": o.CloudNativePGImage + ":" + spec.Version,
		// A PodDisruptionBudget for one instance would block all drains of its node.
		"enablePDB":  instances > 1,
		"postgresql": postgres,
		"storage":    storage,
		"resources":  map[string]any{"requests": quantities(need.Requests), "limits": quantities(need.Limits)},
		// By default, an instance that shuts down waits three minutes for clients to disconnect, and
		// rejects new connections during that time.
		"smartShutdownTimeout": int64(0),
		"managed":              map[string]any{"services": map[string]any{"additional": services}},
		"inheritedMetadata":    map[string]any{"labels": map[string]any{label: value}},
		"bootstrap": map[string]any{"initdb": map[string]any{
			"database": database, "owner": user, "dataChecksums": true,
			"encoding": "UTF8", "localeCollate": "C", "localeCType": "C.UTF-8",
			"secret": map[string]any{"name": meta.Name},
		}},
	}
	if spec.Backup != nil {
		snapshots := map[string]any{"snapshotOwnerReference": "none"}
		if spec.Backup.VolumeSnapshotClassName != "" {
			snapshots["className"] = spec.Backup.VolumeSnapshotClassName
		}
		cluster["backup"] = map[string]any{"volumeSnapshot": snapshots}
	}
	return cluster
}

func instancesOf(spec *v1alpha1.ProvisionedPostgres) int64 {
	return int64(ptr.Deref(spec.Instances, defaultInstances))
}

// service returns an additional Service of a Cluster, for its primary (rw) or its standbys (ro).
// CloudNativePG's own Services have cluster IPs, so --postgres-networks would have to allow the whole
// network of Services. This headless Service resolves to the addresses of Pods.
func service(name, selectorType string) map[string]any {
	return map[string]any{
		"selectorType": selectorType,
		"serviceTemplate": map[string]any{
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"clusterIP": corev1.ClusterIPNone},
		},
	}
}

// object returns an object of a kind without a Go type in this module.
func object(kind schema.GroupVersionKind, meta metav1.ObjectMeta, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	o.SetLabels(meta.Labels)
	o.SetAnnotations(meta.Annotations)
	return o
}

func anyOf(texts map[string]string) map[string]any {
	out := map[string]any{}
	for name, text := range texts {
		out[name] = text
	}
	return out
}

func quantities(list corev1.ResourceList) map[string]any {
	out := map[string]any{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}
