package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageType names the engine that keeps a site's records.
// +kubebuilder:validation:Enum=Cluster;Postgres
type StorageType string

const (
	// StorageCluster keeps records as objects of the cluster, backed by etcd.
	StorageCluster StorageType = "Cluster"
	// StoragePostgres keeps records in a Postgres database.
	StoragePostgres StorageType = "Postgres"
)

// DeletionPolicy says what becomes of a site's records when its Site is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain leaves the records and the SiteClaim in place. A Site of
	// the same namespace and name adopts them again.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete removes every record and the SiteClaim with the Site.
	DeletionDelete DeletionPolicy = "Delete"
)

// SiteFinalizer is on a Site only while its deletionPolicy is Delete.
const SiteFinalizer = "paddock.health/site"

// PausedAnnotation on a Site, with any value, stops its reconciling.
const PausedAnnotation = "paddock.health/paused"

// Condition types of a Site.
const (
	// ConditionReady is true only when a request to the site would succeed.
	ConditionReady = "Ready"
	// ConditionReconciling is true while the controller works towards the spec (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when the controller waits for a person (kstatus).
	ConditionStalled = "Stalled"
	// ConditionAccepted is true when the Site holds its siteID and its namespace.
	ConditionAccepted = "Accepted"
	// ConditionStorageReady is true when the storage can take records.
	ConditionStorageReady = "StorageReady"
	// ConditionSchemaReady is true when the database has the tables that this release
	// needs. Only with storage.type Postgres.
	ConditionSchemaReady = "SchemaReady"
	// ConditionExposed is true when the address that spec.exposure asks for leads to the
	// site, as far as the cluster tells. Only with spec.exposure.
	ConditionExposed = "Exposed"
	// ConditionIndexReady is true when searches find all that the release of the API
	// servers can search for; false while records are indexed anew after an upgrade.
	// Only with storage.type Postgres. The API servers report it.
	ConditionIndexReady = "IndexReady"
	// ConditionStorageNearLimit is true from 80 % of a storage limit.
	// The API servers report it.
	ConditionStorageNearLimit = "StorageNearLimit"
)

// Reasons of the Accepted condition.
const (
	ReasonAccepted = "Accepted"
	// ReasonSiteIDTaken: another Site holds the siteID, or data retained from it does.
	ReasonSiteIDTaken = "SiteIDTaken"
	// ReasonNamespaceOccupied: another Site, or data retained from it, is in the namespace.
	ReasonNamespaceOccupied = "NamespaceOccupied"
	// ReasonSecretsForbidden: the controller may not use the Secrets of the namespace, which
	// its owner has to allow. It is a reason of Webhooks too.
	ReasonSecretsForbidden = "SecretsForbidden"
)

// Reasons of the StorageReady condition.
const (
	// ReasonClusterStorage: records are kept as objects of the cluster.
	ReasonClusterStorage = "ClusterStorage"
	// ReasonPostgresStorage: records are kept in a Postgres database.
	ReasonPostgresStorage = "PostgresStorage"
	// ReasonSecretNotFound: there is no such Secret of type SecretTypeDSN.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonInvalidSecret: the Secret does not hold a connection string that may be used.
	ReasonInvalidSecret = "InvalidSecret"
	// ReasonDatabaseUnreachable: the database does not answer, or not in a usable way.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonForeignRecords: the namespace holds records, or a database, that are not of the
	// Site's claim.
	ReasonForeignRecords = "ForeignRecords"
	// ReasonNotAccepted: a Site that is not accepted has no storage.
	ReasonNotAccepted = "NotAccepted"
)

// Reasons of the StorageReady condition of a provisioned database, besides those above.
const (
	// ReasonProvisioning: the database is being made, for the first time or anew.
	ReasonProvisioning = "Provisioning"
	// ReasonPodPending: no node takes the database's Pod; the message is the scheduler's.
	ReasonPodPending = "PodPending"
	// ReasonUnavailable: the database's Pod does not get ready.
	ReasonUnavailable = "Unavailable"
	// ReasonVolumeLost: the volume behind the database is gone.
	ReasonVolumeLost = "VolumeLost"
	// ReasonMajorUpgrade: the data is of another major version of Postgres.
	ReasonMajorUpgrade = "MajorUpgrade"
	// ReasonEngineMissing: the operator that runs the engine is not installed.
	ReasonEngineMissing = "EngineMissing"
	// ReasonRefused: the API server refuses an object that the database, or the address, needs.
	ReasonRefused = "Refused"
)

// Reasons of the SchemaReady condition.
const (
	// ReasonMigrated: the tables are those of this release.
	ReasonMigrated = "Migrated"
	// ReasonNewerSchema: a later release migrated the tables further than this one may use.
	ReasonNewerSchema = "NewerSchema"
	// ReasonMigrationFailed: the migration ended with an error and was rolled back.
	ReasonMigrationFailed = "MigrationFailed"
	// ReasonNoDatabase: there is no database to migrate yet.
	ReasonNoDatabase = "NoDatabase"
)

// Reasons of the Exposed condition, besides NotAccepted and Refused.
const (
	// ReasonExposed: the objects that lead to the site are there, and taken where they tell.
	ReasonExposed = "Exposed"
	// ReasonHostNotAllowed: the operator does not allow the host.
	ReasonHostNotAllowed = "HostNotAllowed"
	// ReasonGatewayNotAllowed: the operator does not allow the Gateway.
	ReasonGatewayNotAllowed = "GatewayNotAllowed"
	// ReasonGatewayAPIMissing: the kinds of the Gateway API are not installed.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonRoutePending: no controller has told yet what it makes of the HTTPRoute.
	ReasonRoutePending = "RoutePending"
	// ReasonRouteNotAccepted: a Gateway does not take the HTTPRoute; the message is its
	// controller's.
	ReasonRouteNotAccepted = "RouteNotAccepted"
)

// Reasons of the IndexReady condition.
const (
	// ReasonIndexed: all records are indexed as this release does.
	ReasonIndexed = "Indexed"
	// ReasonIndexing: records are being indexed anew.
	ReasonIndexing = "Indexing"
)

// Reasons of the Ready, Reconciling and Stalled conditions, besides those above.
const (
	// ReasonServing: requests to the site succeed.
	ReasonServing = "Serving"
	// ReasonPending: the controller has not found out yet.
	ReasonPending = "Pending"
	// ReasonRetrying: the last attempt failed; the controller's log says why.
	ReasonRetrying = "Retrying"
	// ReasonDeleting: the Site is being deleted.
	ReasonDeleting = "Deleting"
)

// SecretTypeDSN is the type of the Secrets that hold how to reach a database.
const SecretTypeDSN = "paddock.health/dsn"

// What the controller hands to the API servers: a Secret of type SecretTypeDSN in the
// operator's namespace, with the key of the data that it is for.
const (
	// DSNKey holds the connection string.
	DSNKey = "uri"
	// SiteKeyLabel has the site key as its value.
	SiteKeyLabel = "paddock.health/site-key"
	// SiteAnnotation names the Site, as namespace/name.
	SiteAnnotation = "paddock.health/site"
)

// RetainLabel is on a namespace while, and only while, it holds data that is not to go
// with a Site. The policies of config/admission keep it there, and such a namespace from
// being deleted.
const RetainLabel = "paddock.health/retain"

// ConnectionName is the name of that Secret for the Site of a namespace, which has but one.
func ConnectionName(namespace string) string { return "site-" + namespace }

// SiteSpec is what a clinic asks for.
// +kubebuilder:validation:XValidation:rule="!has(self.fhir) || !has(self.fhir.referentialIntegrity) || self.fhir.referentialIntegrity != 'Enforce' || self.storage.type == 'Postgres'",message="fhir.referentialIntegrity Enforce needs storage.type Postgres: objects of the cluster cannot be checked and written as one"
// +kubebuilder:validation:XValidation:rule="has(self.siteID) == has(oldSelf.siteID)",message="siteID is immutable"
type SiteSpec struct {
	// siteID is the path segment {siteId} of the site's address, unique in the
	// cluster. Default: metadata.name. Immutable.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="siteID is immutable"
	SiteID string `json:"siteID,omitempty"`

	// displayName is the clinic's name for people.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	DisplayName string `json:"displayName,omitempty"`

	// timeZone is the zone of times without one in searches, by its name in the IANA
	// database, such as Australia/Melbourne. Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && timestamp('2000-01-01T00:00:00Z').getFullYear(self) > 0",message="timeZone must be a name of the IANA time zone database, such as Australia/Melbourne"
	TimeZone string `json:"timeZone,omitempty"`

	// storage says where the site's records are kept.
	// +optional
	// +kubebuilder:default={type: Cluster}
	Storage Storage `json:"storage,omitzero"`

	// deletionPolicy says what becomes of the records when the Site is deleted.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// access says which tokens the site takes.
	// +optional
	Access Access `json:"access,omitzero"`

	// fhir tunes the FHIR API of the site.
	// +optional
	FHIR FHIR `json:"fhir,omitzero"`

	// limits bound what one request may ask of the site.
	// +optional
	Limits Limits `json:"limits,omitzero"`

	// cors lets pages of other origins use the site from a browser. Without it none may.
	// +optional
	CORS *CORS `json:"cors,omitempty"`

	// exposure gives the site an address of its own. Without it the site is reached at that
	// of the installation.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// Storage says where records are kept.
// +kubebuilder:validation:XValidation:rule="self.type == 'Postgres' || !has(self.postgres)",message="storage.postgres needs storage.type Postgres"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || !has(self.cluster)",message="storage.cluster needs storage.type Cluster"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || has(self.postgres)",message="storage.type Postgres needs storage.postgres"
type Storage struct {
	// type is the storage engine. Immutable.
	// +optional
	// +kubebuilder:default=Cluster
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storage.type is immutable: make another Site and copy the records by the API"
	Type StorageType `json:"type,omitempty"`

	// cluster bounds what a site may keep as objects of the cluster.
	// +optional
	Cluster *ClusterStorage `json:"cluster,omitempty"`

	// postgres says which database holds the records.
	// +optional
	Postgres *PostgresStorage `json:"postgres,omitempty"`
}

// PostgresStorage says which database holds a site's records.
// +kubebuilder:validation:XValidation:rule="has(self.external) != has(self.provisioned)",message="exactly one of storage.postgres.external and storage.postgres.provisioned must be given"
// +kubebuilder:validation:XValidation:rule="has(self.external) == has(oldSelf.external)",message="storage.postgres cannot change between external and provisioned: make another Site and copy the records by the API"
type PostgresStorage struct {
	// external is a database that others run, of Postgres 14 or later; tested with 15 and 18.
	// +optional
	External *ExternalPostgres `json:"external,omitempty"`

	// provisioned is a database that the controller runs in the Site's namespace.
	// +optional
	Provisioned *ProvisionedPostgres `json:"provisioned,omitempty"`
}

// ExternalPostgres is a database that others run. Several sites may share one.
type ExternalPostgres struct {
	// secretRef names the Secret that says how to reach it.
	// +required
	SecretRef DSNReference `json:"secretRef,omitzero"`
}

// DSNReference names a Secret of type paddock.health/dsn in the Site's namespace. When the
// Secret changes, the API servers take the new connection up without a restart.
type DSNReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key that holds the connection string, a URI such as
	// postgres://user:password@host:5432/database?sslmode=verify-full. TLS is required
	// unless it says sslmode=disable. The Secret may also hold ca.crt, the authorities
	// to trust, and tls.crt and tls.key, a client certificate. Default: uri.
	// +optional
	// +kubebuilder:default=uri
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterStorage bounds etcd-backed storage. etcd refuses requests over 1.5 MiB
// and stops taking writes at its quota (2 GiB by default), hence hard limits.
type ClusterStorage struct {
	// maxRecords is the most records the site may hold. A deleted record counts
	// too, as its last version and history remain. Default 2000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRecords *int32 `json:"maxRecords,omitempty"`

	// maxVersions is how many superseded versions of a record are kept. Default 20.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxVersions *int32 `json:"maxVersions,omitempty"`

	// maxObjectSize is the most one encoded object may take. Default 256Ki, at most 1Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Mi')) <= 0",message="maxObjectSize must be between 1Ki and 1Mi"
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`

	// maxSize is the most the site's records and their history may take together. Default 64Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0",message="maxSize must be at least 1Ki"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// Access says whose tokens a site takes.
type Access struct {
	// kubernetes takes tokens of the cluster's own issuer.
	// +optional
	Kubernetes KubernetesAccess `json:"kubernetes,omitzero"`
}

// KubernetesAccess tunes the check of ServiceAccount tokens by TokenReview.
// A token for the audience paddock.health/<namespace>/<name> of the Site is always taken.
type KubernetesAccess struct {
	// apiServerAudience also takes tokens made for the API server itself, such as
	// those mounted into pods by default. Default false: such a token, once sent
	// to the site, could be used against the cluster.
	// +optional
	APIServerAudience bool `json:"apiServerAudience,omitempty"`
}

// FHIR tunes the FHIR API of a site.
type FHIR struct {
	// updateCreate lets a PUT create a record under the client's id (R4 http.html#upsert). Default true.
	// +optional
	UpdateCreate *bool `json:"updateCreate,omitempty"`

	// unknownParameters says what becomes of a search with parameters that the server
	// does not know, where the request does not say (Prefer: handling). Default Reject:
	// a filter that is passed over shows more than was asked for.
	// +optional
	// +kubebuilder:default=Reject
	UnknownParameters UnknownParameters `json:"unknownParameters,omitempty"`

	// referentialIntegrity says whether a record may refer to a record of this site that
	// is not there. Enforce refuses such writes, and the deletion of what others refer
	// to, and needs storage.type Postgres. Default Ignore.
	// +optional
	// +kubebuilder:default=Ignore
	ReferentialIntegrity ReferentialIntegrity `json:"referentialIntegrity,omitempty"`
}

// ReferentialIntegrity says what becomes of references to records that are not there.
// +kubebuilder:validation:Enum=Ignore;Enforce
type ReferentialIntegrity string

const (
	// ReferentialIntegrityIgnore takes them.
	ReferentialIntegrityIgnore ReferentialIntegrity = "Ignore"
	// ReferentialIntegrityEnforce refuses them, and the deletion of what is referred to.
	ReferentialIntegrityEnforce ReferentialIntegrity = "Enforce"
)

// UnknownParameters says what becomes of unknown search parameters.
// +kubebuilder:validation:Enum=Reject;Ignore
type UnknownParameters string

const (
	// UnknownParametersReject answers such a search with 400.
	UnknownParametersReject UnknownParameters = "Reject"
	// UnknownParametersIgnore passes over them and says so in the answer.
	UnknownParametersIgnore UnknownParameters = "Ignore"
)

// Limits bound what one request may ask for.
type Limits struct {
	// maxBodySize is the largest request body. Default 4Mi, at most 64Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Mi')) <= 0",message="maxBodySize must be between 1Ki and 64Mi"
	MaxBodySize *resource.Quantity `json:"maxBodySize,omitempty"`

	// maxBundleEntries is the most entries of a batch or transaction. Default 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxBundleEntries *int32 `json:"maxBundleEntries,omitempty"`

	// maxIncluded is the most records that _include and _revinclude add to a page of a
	// search; the answer says so when there are more. Default 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxIncluded *int32 `json:"maxIncluded,omitempty"`
}

// SiteStatus is what the controller and the API servers saw.
type SiteStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Reconciling, Stalled, Accepted, StorageReady, SchemaReady, Exposed,
	// IndexReady, StorageNearLimit.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// siteID is the path segment the Site holds or waits for.
	// +optional
	SiteID string `json:"siteID,omitempty"`

	// siteKey is the key of the data that StorageReady speaks of, from the SiteClaim.
	// StorageReady says nothing about a claim that was made anew since.
	// +optional
	SiteKey string `json:"siteKey,omitempty"`

	// url is the address of the site; the FHIR API is at url + "/fhir". Links in answers
	// begin with it.
	// +optional
	URL string `json:"url,omitempty"`
}

// Site is a clinic: a path segment, a storage and the rules for reaching it.
// Its namespace is its own; a second Site there is refused.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Site ID",type=string,JSONPath=`.status.siteID`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.siteID) || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name cannot serve as siteID: set spec.siteID to at most 63 letters a-z, digits and hyphens"
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is there even when nobody wrote it, so that the rules on its fields always run.
	// +optional
	// +kubebuilder:default={}
	Spec SiteSpec `json:"spec,omitzero"`
	// +optional
	Status SiteStatus `json:"status,omitzero"`
}

// SiteID is the path segment the Site asks for.
func (s *Site) SiteID() string {
	if s.Spec.SiteID != "" {
		return s.Spec.SiteID
	}
	return s.Name
}

// SiteList is a list of Sites.
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}
