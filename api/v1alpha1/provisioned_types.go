package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// PostgresEngine says what runs a provisioned database.
// +kubebuilder:validation:Enum=StatefulSet;CloudNativePG
type PostgresEngine string

const (
	// EngineStatefulSet is one Pod of the official Postgres image with one volume.
	EngineStatefulSet PostgresEngine = "StatefulSet"
	// EngineCloudNativePG is a Cluster of the CloudNativePG operator: several instances,
	// fail-over and backups are its work.
	EngineCloudNativePG PostgresEngine = "CloudNativePG"
)

// ProvisionedPostgres is a database that the controller runs in the Site's namespace, for
// that Site alone. Its objects are all named paddock-postgres.
// +kubebuilder:validation:XValidation:rule="self.engine == 'CloudNativePG' || !has(self.instances)",message="storage.postgres.provisioned.instances needs engine CloudNativePG"
// +kubebuilder:validation:XValidation:rule="self.engine == 'CloudNativePG' || !has(self.backup)",message="storage.postgres.provisioned.backup needs engine CloudNativePG"
type ProvisionedPostgres struct {
	// engine is what runs the database. Default StatefulSet. Immutable.
	// +optional
	// +kubebuilder:default=StatefulSet
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storage.postgres.provisioned.engine is immutable: make another Site and copy the records by the API"
	Engine PostgresEngine `json:"engine,omitempty"`

	// version of Postgres, 14 to 18, such as 17 or 17.6: the tag of the image. Another
	// minor version is rolled out; the major version stays.
	// +required
	// +kubebuilder:validation:Pattern=`^1[4-8](\.[0-9]{1,2})?$`
	// +kubebuilder:validation:XValidation:rule="self.split('.')[0] == oldSelf.split('.')[0]",message="the major version of Postgres cannot change in place: make another Site with the new version and copy the records by the API"
	Version string `json:"version,omitempty"`

	// storage is the volume, one for each instance.
	// +required
	Storage Volume `json:"storage,omitzero"`

	// resources of each instance. Default: a limit of 1Gi memory, and requests of 100m CPU
	// and a quarter of that memory.
	// +optional
	Resources Resources `json:"resources,omitzero"`

	// instances of a CloudNativePG cluster. From 2 on, a write is acknowledged when one
	// other instance has it too. Default 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Instances *int32 `json:"instances,omitempty"`

	// backup takes snapshots of a CloudNativePG cluster's volumes.
	// +optional
	Backup *PostgresBackup `json:"backup,omitempty"`
}

// Volume is what a database is kept on.
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName)",message="storageClassName is immutable"
type Volume struct {
	// size of the volume. It may grow, where the storage class lets volumes grow.
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="size must be at least 1Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="size may only grow"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName of the volume. Default: that of the cluster. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClassName is immutable"
	StorageClassName string `json:"storageClassName,omitempty"`
}

// Resources are those of a container.
type Resources struct {
	// requests are what a node must have free.
	// +optional
	Requests Amounts `json:"requests,omitzero"`

	// limits are what the container may use.
	// +optional
	Limits Amounts `json:"limits,omitzero"`
}

// Amounts of CPU and memory.
type Amounts struct {
	// cpu in cores.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1m')) >= 0",message="cpu must be at least 1m"
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory in bytes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('128Mi')) >= 0",message="memory must be at least 128Mi"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// PostgresBackup is a schedule of volume snapshots. They outlive the Site, whatever its
// deletionPolicy.
type PostgresBackup struct {
	// schedule in the six fields of CloudNativePG, seconds first, such as "0 0 2 * * *".
	// +required
	// +kubebuilder:validation:MinLength=11
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule,omitempty"`

	// volumeSnapshotClassName of the snapshots. Default: that of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`
}
