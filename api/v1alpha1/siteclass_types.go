package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// DefaultClassAnnotation with the value "true" on a SiteClass makes the SiteClass the default:
	// the class of new Sites without spec.className. Of several defaults, the newest applies.
	DefaultClassAnnotation = "paddock.health/is-default-class"

	// SiteClassFinalizer is the finalizer of each SiteClass. It is removed from a SiteClass that is being
	// deleted when no Site uses the SiteClass, and when the databases to delete with it no longer exist.
	SiteClassFinalizer = "paddock.health/sites"

	// SiteClassLabel is the label of the objects of a database that is created by the template of a pool.
	// Its value is the name of the SiteClass.
	SiteClassLabel = "paddock.health/site-class"

	// DrainLabel is the label of the SiteMoves that the controller creates to drain a database of a pool. Its
	// value is the name of the SiteClass.
	DrainLabel = "paddock.health/drain"
)

// SiteClassSpec has the values that apply to fields that Sites of the class do not set.
type SiteClassSpec struct {
	// description is a text for people, at most 500 characters. Paddock does not interpret it.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`

	// storage is the storage of new Sites whose spec.storage has its default: type Cluster, without
	// storage.cluster. The controller writes this storage to spec.storage of the Site once; a later
	// change of the class does not move existing Sites. Default: type Cluster.
	// +optional
	Storage *ClassStorage `json:"storage,omitempty"`

	// limits has values for the fields of spec.limits that a Site does not set.
	// +optional
	Limits Limits `json:"limits,omitzero"`

	// retention has values for the fields of spec.retention that a Site does not set.
	// +optional
	Retention *Retention `json:"retention,omitempty"`

	// privacy applies to Sites without spec.privacy.
	// +optional
	Privacy Privacy `json:"privacy,omitzero"`

	// access applies to Sites without spec.access.issuers. If unset, these Sites have no issuers.
	// +optional
	Access ClassAccess `json:"access,omitzero"`

	// exposure applies to Sites without spec.exposure. All these Sites have the same host, and each
	// has its own path.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// ClassAccess has the issuers of a class.
type ClassAccess struct {
	// issuers are OpenID Connect issuers whose tokens Sites without spec.access.issuers accept, at most
	// 8. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.url == b.url))",message="each issuer must have a url of its own"
	Issuers []Issuer `json:"issuers,omitempty"`
}

// ClassStorage is the storage of new Sites.
// +kubebuilder:validation:XValidation:rule="self.type == 'Postgres' || !has(self.postgres)",message="storage.postgres needs storage.type Postgres"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || !has(self.cluster)",message="storage.cluster needs storage.type Cluster"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || has(self.postgres)",message="storage.type Postgres needs storage.postgres"
type ClassStorage struct {
	// type is the storage engine: Cluster (objects in etcd) or Postgres. Default: Cluster.
	// +optional
	// +kubebuilder:default=Cluster
	Type StorageType `json:"type,omitempty"`

	// cluster has the limits of each Site's records in etcd. It can be set only with type Cluster.
	// +optional
	Cluster *ClusterStorage `json:"cluster,omitempty"`

	// postgres selects the databases: either pool or provisioned. It is required with type
	// Postgres.
	// +optional
	Postgres *ClassPostgres `json:"postgres,omitempty"`
}

// ClassPostgres selects the databases of new Sites.
// +kubebuilder:validation:XValidation:rule="has(self.pool) != has(self.provisioned)",message="exactly one of storage.postgres.pool and storage.postgres.provisioned must be given"
type ClassPostgres struct {
	// pool has databases that Sites share.
	// +optional
	Pool *PostgresPool `json:"pool,omitempty"`

	// provisioned describes the database that the controller runs for each Site, in the Site's
	// namespace.
	// +optional
	Provisioned *ProvisionedPostgres `json:"provisioned,omitempty"`
}

// PostgresPool is a list of databases, a template by which the controller creates databases, or both. The
// controller places each Site on one of them.
// +kubebuilder:validation:XValidation:rule="has(self.template) || has(self.databases) && size(self.databases) > 0",message="storage.postgres.pool needs databases, a template or both"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.databases) || self.databases.all(d, !d.name.matches('^auto-[0-9]+$'))",fieldPath=".databases",message="names of the form auto-NUMBER are those of databases that the controller creates by the template: choose another name"
type PostgresPool struct {
	// databases are existing databases, at most 64. They are optional with template.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Databases []PoolDatabase `json:"databases,omitempty"`

	// template describes the databases that the controller creates when Sites wait because no database of
	// the pool has room for them. If unset, the controller creates no databases.
	// +optional
	Template *PoolTemplate `json:"template,omitempty"`
}

// PoolDatabase is a database of a pool.
type PoolDatabase struct {
	// name is the name of the database in the pool. Sites refer to the database by this name, so it
	// must not be given to another database later.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// secretRef names the Secret with the connection string, of type paddock.health/dsn, in the
	// operator's namespace. Owners of Sites cannot read the Secret.
	// +required
	SecretRef DSNReference `json:"secretRef,omitzero"`

	// capacity is the maximum number of Sites in the database, deleted Sites with retained data
	// included, 0 to 100000. If capacity is less than the number of Sites in the database, these Sites
	// stay, and no Site is added.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Capacity *int32 `json:"capacity,omitempty"`

	// region is the name of a region, such as that of a data center. If unset, the database has no
	// region. Sites with storage.postgres.pool.region are placed only on databases with the same
	// region.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Region string `json:"region,omitempty"`

	// drain stops the placement of Sites on the database, and moves the Sites that are in it to other
	// databases of the pool: the controller creates a SiteMove named drain-NAME for each Site, at most two
	// at a time. Default: false.
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// PoolTemplate describes databases that the controller creates one after the other, in the operator's
// namespace. In the pool they are named auto-1, auto-2 and so on.
type PoolTemplate struct {
	// capacity is the maximum number of Sites in each database, deleted Sites with retained data
	// included, 1 to 100000. A change applies to existing databases too.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Capacity *int32 `json:"capacity,omitempty"`

	// maxDatabases is the maximum number of databases that exist by the template, 1 to 16. At the limit,
	// Sites without a database get the reason NoCapacity. Existing databases beyond a lowered limit stay.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	MaxDatabases *int32 `json:"maxDatabases,omitempty"`

	// region is the region of the databases, as that of a listed database. Default: no region.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Region string `json:"region,omitempty"`

	// drain has the names of databases of the template that are drained, as by drain of a listed database,
	// and that are not created again, at most 16. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=8
	// +kubebuilder:validation:items:Pattern=`^auto-[1-9][0-9]{0,2}$`
	Drain []string `json:"drain,omitempty"`

	// deletionPolicy selects what happens to the databases when the SiteClass is deleted, which is possible
	// only when they have no data of a Site: Retain keeps them, and a SiteClass with the same name and a
	// template uses them again. Delete deletes them. A database is not deleted while the SiteClass exists,
	// even if it has no Sites. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// cloudNativePG describes the Cluster of CloudNativePG that is created for each database.
	// +required
	CloudNativePG *PoolCluster `json:"cloudNativePG,omitempty"`
}

// PoolCluster describes a Cluster of CloudNativePG with a database of a pool.
// +kubebuilder:validation:XValidation:rule="has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName) && (!has(self.storage.storageClassName) || self.storage.storageClassName == oldSelf.storage.storageClassName)",fieldPath=".storage.storageClassName",message="storageClassName is immutable: use another SiteClass"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.storage.size)).compareTo(quantity(string(oldSelf.storage.size))) >= 0",fieldPath=".storage.size",message="size may only grow: set at least the current size"
type PoolCluster struct {
	// version is the Postgres version, 14 to 18, such as 17 or 17.6. A change of the minor version applies
	// to existing databases too, and restarts them one instance after the other. Databases of another
	// major version stay as they are.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^1[4-8](\.[0-9]{1,2})?$`
	Version string `json:"version,omitempty"`

	// instances is the number of instances, 1 to 9. With 2 or more, a write is acknowledged only when at
	// least two instances have stored it. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Instances *int32 `json:"instances,omitempty"`

	// storage describes the volume of each instance.
	// +required
	Storage Volume `json:"storage,omitzero"`

	// resources are the resources of the container of each instance, with the defaults of
	// storage.postgres.provisioned.resources.
	// +optional
	Resources Resources `json:"resources,omitzero"`

	// backup schedules snapshots of the volumes. If unset, no snapshots are taken.
	// +optional
	Backup *PostgresBackup `json:"backup,omitempty"`
}

// PooledPostgres is a database that the controller chooses from the pool of the Site's class.
// status.database of the Site has the name of the chosen database.
type PooledPostgres struct {
	// region restricts the choice to databases with this region. Default: all databases of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`
}

// SiteClassStatus is the observed use of a SiteClass.
type SiteClassStatus struct {
	// observedGeneration is the metadata.generation that the status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// sites is the number of Sites of the class.
	// +optional
	Sites int32 `json:"sites"`

	// databases has the use of each database that is in the pool or has data of a Site of the
	// class.
	// +optional
	// +listType=map
	// +listMapKey=name
	Databases []PoolDatabaseStatus `json:"databases,omitempty"`
}

// PoolDatabaseStatus is the use of a database of a pool.
type PoolDatabaseStatus struct {
	// name is the name of the database in the pool.
	// +required
	Name string `json:"name,omitempty"`
	// sites is the number of Sites in the database, deleted Sites with retained data included. A Site
	// that is being moved counts in both databases.
	// +optional
	Sites int32 `json:"sites"`
	// free is the number of further Sites that can be placed on the database. With drain, and in a phase
	// other than Ready, it is 0.
	// +optional
	Free int32 `json:"free"`
	// phase is the state of a database that the controller creates by the template. It is empty for other
	// databases.
	// +optional
	Phase PoolDatabasePhase `json:"phase,omitempty"`
	// message is the reason why Sites of a database with drain cannot be moved, or why a database is not
	// ready. It is empty if there is none.
	// +optional
	Message string `json:"message,omitempty"`
}

// PoolDatabasePhase is the state of a database that is created by a template.
type PoolDatabasePhase string

const (
	// PoolDatabaseCreating means that the database has accepted no connections yet.
	PoolDatabaseCreating PoolDatabasePhase = "Creating"
	// PoolDatabaseReady means that the database accepts connections, and that Sites are placed on it.
	PoolDatabaseReady PoolDatabasePhase = "Ready"
	// PoolDatabaseUnavailable means that the database does not accept connections, or that a part of it
	// is missing. Its Sites stay, and no Site is added.
	PoolDatabaseUnavailable PoolDatabasePhase = "Unavailable"
)

// SiteClass is a set of values that a platform team gives to the Sites of many tenants: where their
// records are stored, and defaults of limits, retention, privacy, issuers and exposure. A Site
// selects its SiteClass by spec.className.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=paddock,path=siteclasses
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.metadata.annotations.paddock\.health/is-default-class`
// +kubebuilder:printcolumn:name="Sites",type=integer,JSONPath=`.status.sites`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 || !has(self.spec.storage) || !has(self.spec.storage.postgres) || !has(self.spec.storage.postgres.pool) || !has(self.spec.storage.postgres.pool.template)",message="metadata.name must have at most 40 characters with storage.postgres.pool.template, because the names of Clusters begin with it"
type SiteClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the values that apply to fields that Sites of the class do not set.
	// +optional
	// +kubebuilder:default={}
	Spec SiteClassSpec `json:"spec,omitzero"`
	// +optional
	Status SiteClassStatus `json:"status,omitzero"`
}

// SiteClassList is a list of SiteClasses.
// +kubebuilder:object:root=true
type SiteClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SiteClass `json:"items"`
}
