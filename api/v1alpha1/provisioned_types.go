package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// PostgresEngine is what runs a provisioned database.
// +kubebuilder:validation:Enum=StatefulSet;CloudNativePG
type PostgresEngine string

const (
	// EngineStatefulSet is a StatefulSet with one Pod of the official Postgres image
	// (docker.io/library/postgres unless the operator sets another) and one volume.
	EngineStatefulSet PostgresEngine = "StatefulSet"
	// EngineCloudNativePG is a Cluster of the CloudNativePG operator, which handles several instances,
	// failover and backups.
	EngineCloudNativePG PostgresEngine = "CloudNativePG"
)

// ProvisionedPostgres is a database that the controller runs in the Site's namespace, for that Site
// only. Engine, major version and storage class of a database cannot change, and its volume can only grow.
// +kubebuilder:validation:XValidation:rule="self.engine == 'CloudNativePG' || !has(self.instances)",message="storage.postgres.provisioned.instances needs engine CloudNativePG"
// +kubebuilder:validation:XValidation:rule="self.engine == 'CloudNativePG' || !has(self.backup)",message="storage.postgres.provisioned.backup needs engine CloudNativePG"
// +kubebuilder:validation:XValidation:rule="(has(self.name) && self.name == 'paddock-postgres-b') != (has(oldSelf.name) && oldSelf.name == 'paddock-postgres-b') || self.engine == oldSelf.engine",fieldPath=".engine",message="storage.postgres.provisioned.engine is immutable: move the Site to a new database with a SiteMove"
// +kubebuilder:validation:XValidation:rule="(has(self.name) && self.name == 'paddock-postgres-b') != (has(oldSelf.name) && oldSelf.name == 'paddock-postgres-b') || self.version.split('.')[0] == oldSelf.version.split('.')[0]",fieldPath=".version",message="the major version of Postgres cannot change in place: move the Site to a new database with a SiteMove"
// +kubebuilder:validation:XValidation:rule="(has(self.name) && self.name == 'paddock-postgres-b') != (has(oldSelf.name) && oldSelf.name == 'paddock-postgres-b') || has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName) && (!has(self.storage.storageClassName) || self.storage.storageClassName == oldSelf.storage.storageClassName)",fieldPath=".storage.storageClassName",message="storageClassName is immutable: move the Site to a new database with a SiteMove"
// +kubebuilder:validation:XValidation:rule="(has(self.name) && self.name == 'paddock-postgres-b') != (has(oldSelf.name) && oldSelf.name == 'paddock-postgres-b') || quantity(string(self.storage.size)).compareTo(quantity(string(oldSelf.storage.size))) >= 0",fieldPath=".storage.size",message="size may only grow: set at least the current size"
type ProvisionedPostgres struct {
	// name is the name of all objects of the database: paddock-postgres or paddock-postgres-b. While a
	// SiteMove moves a Site from one provisioned database to another, a namespace has both. The
	// controller sets name when it switches the Site. Set it only to adopt the retained database of a
	// deleted Site. Immutable. Default: paddock-postgres.
	// +optional
	// +kubebuilder:validation:Enum=paddock-postgres;paddock-postgres-b
	// +kubebuilder:validation:MaxLength=18
	Name string `json:"name,omitempty"`

	// engine is what runs the database: StatefulSet (one Pod of the official image of Postgres) or
	// CloudNativePG (a Cluster of its operator, with replicas and backups). Immutable. Default:
	// StatefulSet.
	// +optional
	// +kubebuilder:default=StatefulSet
	Engine PostgresEngine `json:"engine,omitempty"`

	// version is the Postgres version, 14 to 18, such as 17 or 17.6. The database runs the image with
	// this tag. The minor version can be changed, which restarts the database. The major version is
	// immutable.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^1[4-8](\.[0-9]{1,2})?$`
	Version string `json:"version,omitempty"`

	// storage describes the volume of each instance.
	// +required
	Storage Volume `json:"storage,omitzero"`

	// resources are the resources of the container of each instance. Defaults of unset amounts: a
	// memory limit of 1Gi, a CPU request of 100m, a memory request of a quarter of the memory limit
	// but at least 256Mi, and no CPU limit.
	// +optional
	Resources Resources `json:"resources,omitzero"`

	// instances is the number of instances of a CloudNativePG cluster, 1 to 9. With 2 or more, a
	// write is acknowledged only when at least two instances have stored it. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Instances *int32 `json:"instances,omitempty"`

	// backup schedules snapshots of the volumes of a CloudNativePG cluster. If unset, no snapshots are
	// taken.
	// +optional
	Backup *PostgresBackup `json:"backup,omitempty"`
}

// Volume describes the PersistentVolumeClaim of a database instance.
type Volume struct {
	// size is the size of the volume, at least 1Gi. It can only grow, and only if the storage class
	// supports it.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="size must be at least 1Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the storage class of the volume. Immutable. Default: the cluster's default
	// storage class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}

// Resources are the resource requirements of a container.
type Resources struct {
	// requests are the amounts that are reserved for the container on its node.
	// +optional
	Requests Amounts `json:"requests,omitzero"`

	// limits are the maximum amounts that the container can use.
	// +optional
	Limits Amounts `json:"limits,omitzero"`
}

// Amounts are amounts of CPU and memory.
type Amounts struct {
	// cpu is the amount of CPU in cores, at least 1m. If unset, the default of
	// storage.postgres.provisioned.resources applies.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1m')) >= 0",message="cpu must be at least 1m"
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory is the amount of memory in bytes, at least 128Mi. If unset, the default of
	// storage.postgres.provisioned.resources applies.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('128Mi')) >= 0",message="memory must be at least 128Mi"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// PostgresBackup is a schedule of volume snapshots. Snapshots remain after the Site is deleted, with
// either deletionPolicy.
type PostgresBackup struct {
	// schedule is a cron expression of CloudNativePG, with six fields, seconds first, such as
	// "0 0 2 * * *".
	// +required
	// +kubebuilder:validation:MinLength=11
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule,omitempty"`

	// volumeSnapshotClassName is the volume snapshot class of the snapshots. Default: the default class of
	// the Kubernetes cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`
}
