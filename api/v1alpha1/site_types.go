package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageType is the engine that stores a site's records.
// +kubebuilder:validation:Enum=Cluster;Postgres
type StorageType string

const (
	// StorageCluster stores records as objects of the cluster, in etcd.
	StorageCluster StorageType = "Cluster"
	// StoragePostgres stores records in a Postgres database.
	StoragePostgres StorageType = "Postgres"
)

// DeletionPolicy selects what happens to a site's records when its Site is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain keeps the records and the SiteClaim. A later Site with the same namespace and
	// name adopts them.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete deletes all records and the SiteClaim with the Site.
	DeletionDelete DeletionPolicy = "Delete"
)

// SiteFinalizer is the finalizer of Sites with the deletionPolicy Delete. Other Sites have none.
const SiteFinalizer = "paddock.health/site"

// PausedAnnotation on a Site, with any value, pauses its reconciliation.
const PausedAnnotation = "paddock.health/paused"

// SecretTypeDSN is the type of Secrets with the connection string of a database.
const SecretTypeDSN = "paddock.health/dsn"

// The controller passes connections to the API servers as Secrets of type SecretTypeDSN in the
// connections namespace. SiteKeyLabel and SiteAnnotation say which data and Site a Secret is for.
const (
	// DSNKey is the key in the data of a connection Secret that has the connection string.
	DSNKey = "uri"
	// SiteKeyLabel is the label of an object, such as a connection Secret, whose value is the site
	// key of the data that the object is for.
	SiteKeyLabel = "paddock.health/site-key"
	// SiteAnnotation is the annotation of an object, such as a connection Secret, that names its Site
	// as namespace/name.
	SiteAnnotation = "paddock.health/site"
)

// RetainLabel is the label that the controller sets on a namespace while it has data of a Site with
// the deletionPolicy Retain. The policies in config/admission prevent the removal of the label and
// the deletion of the namespace.
const RetainLabel = "paddock.health/retain"

// ConnectionName returns the name of the connection Secret for the Site in a namespace. A namespace
// has at most one Site.
func ConnectionName(namespace string) string { return "site-" + namespace }

// SiteSpec is the desired state of a Site.
// +kubebuilder:validation:XValidation:rule="!has(self.fhir) || !has(self.fhir.referentialIntegrity) || self.fhir.referentialIntegrity != 'Enforce' || self.storage.type == 'Postgres'",fieldPath=".fhir.referentialIntegrity",message="fhir.referentialIntegrity Enforce needs storage.type Postgres: storage.type Cluster cannot check references and write in one transaction"
// +kubebuilder:validation:XValidation:rule="has(self.siteID) == has(oldSelf.siteID)",fieldPath=".siteID",message="siteID is immutable: make another Site to use another siteID"
type SiteSpec struct {
	// siteID is the path segment {siteId} of the site's URL. It is unique in the cluster and
	// immutable. Default: metadata.name.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="siteID is immutable: make another Site to use another siteID"
	SiteID string `json:"siteID,omitempty"`

	// displayName is the name of the clinic for people to read, at most 200 characters. Paddock does
	// not interpret it.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	DisplayName string `json:"displayName,omitempty"`

	// timeZone is the time zone of times without a zone in searches, and of the days of _lastUpdated,
	// _since and _at. Other dates are days in UTC. It is a name of the IANA time zone database, such as
	// Australia/Melbourne. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && !self.contains(':') && timestamp('2000-01-01T00:00:00Z').getFullYear(self) > 0",message="timeZone must be a name of the IANA time zone database, such as Australia/Melbourne"
	TimeZone string `json:"timeZone,omitempty"`

	// className is the name of the SiteClass whose values apply to the fields that this Site does not
	// set. If unset when the Site is created, the controller sets it to the default SiteClass, if
	// there is one. An empty name selects no class.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ClassName *string `json:"className,omitempty"`

	// storage selects where the site's records are stored. If a new Site of a SiteClass has the
	// default, the controller changes storage to the storage of the class. To keep type Cluster, set
	// storage.cluster.
	// +optional
	// +kubebuilder:default={type: Cluster}
	Storage Storage `json:"storage,omitzero"`

	// takeOver names the Site of another namespace whose siteID and data this Site takes over, by a
	// SiteMove there. spec.siteID must be the same. Until then, this Site waits with the condition
	// Accepted false, and never takes a siteID itself. After the move, takeOver has no effect.
	// +optional
	TakeOver *SiteName `json:"takeOver,omitempty"`

	// deletionPolicy selects what happens to the records when the Site is deleted. Retain keeps them
	// for a later Site with the same namespace and name. Delete deletes them. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// access selects which tokens the site accepts. If unset, the site accepts ServiceAccount tokens
	// with the audience paddock.health/<namespace>/<name> of the Site.
	// +optional
	Access Access `json:"access,omitzero"`

	// privacy restricts which records a caller can see, in addition to the caller's rights on
	// resource types. If unset, only records with the confidentiality R or V are hidden, from callers
	// without the verb "privileged".
	// +optional
	Privacy Privacy `json:"privacy,omitzero"`

	// audit selects what the audit log records about each request, and for how long.
	// +optional
	// +kubebuilder:default={}
	Audit Audit `json:"audit,omitzero"`

	// retention is how long deleted records, superseded versions, webhook deliveries and audit
	// entries are kept. If unset, deleted records and superseded versions are kept for ever,
	// deliveries for 168h, and audit entries for spec.audit.retention.
	// +optional
	Retention *Retention `json:"retention,omitempty"`

	// fhir selects how the FHIR API of the site handles ids chosen by clients, unknown search
	// parameters, and references to missing records.
	// +optional
	FHIR FHIR `json:"fhir,omitzero"`

	// events selects which changes of records produce events for webhooks.
	// +optional
	Events SiteEvents `json:"events,omitzero"`

	// limits are the maximum rates and sizes of requests to the site. Each API server counts requests
	// on its own, so two replicas allow twice these rates.
	// +optional
	Limits Limits `json:"limits,omitzero"`

	// cors selects the web pages of other origins that can call the site from a browser. If unset, no
	// page of another origin can.
	// +optional
	CORS *CORS `json:"cors,omitempty"`

	// sandbox marks a Site for development, whose records may be lost: `kubectl paddock reset`
	// replaces them by those of a demo clinic. sandbox changes no rights of callers. Default: false.
	// +optional
	Sandbox bool `json:"sandbox,omitempty"`

	// exposure gives the site a host name of its own, by an Ingress or an HTTPRoute. If unset, the
	// site is reachable only at the host name of the installation.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// Storage selects where records are stored.
// +kubebuilder:validation:XValidation:rule="self.type == 'Postgres' || !has(self.postgres)",message="storage.postgres needs storage.type Postgres"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || !has(self.cluster)",message="storage.cluster needs storage.type Cluster"
// +kubebuilder:validation:XValidation:rule="self.type == 'Cluster' || has(self.postgres)",message="storage.type Postgres needs storage.postgres"
type Storage struct {
	// type is the storage engine: Cluster (objects in etcd) or Postgres. Only a SiteMove changes
	// it. Default: Cluster.
	// +optional
	// +kubebuilder:default=Cluster
	Type StorageType `json:"type,omitempty"`

	// cluster has the limits of the site's records in etcd. It can be set only with type Cluster.
	// +optional
	Cluster *ClusterStorage `json:"cluster,omitempty"`

	// postgres selects the database: external, provisioned or pool. It is required with type
	// Postgres.
	// +optional
	Postgres *PostgresStorage `json:"postgres,omitempty"`
}

// PostgresStorage selects the database that stores a site's records.
// +kubebuilder:validation:XValidation:rule="[has(self.external), has(self.provisioned), has(self.pool)].filter(given, given).size() == 1",message="exactly one of storage.postgres.external, storage.postgres.provisioned and storage.postgres.pool must be given"
type PostgresStorage struct {
	// external is an existing database with Postgres 14 or later. Paddock is tested with 15 and 18.
	// +optional
	External *ExternalPostgres `json:"external,omitempty"`

	// provisioned is a database that the controller creates and runs in the Site's namespace.
	// +optional
	Provisioned *ProvisionedPostgres `json:"provisioned,omitempty"`

	// pool is a database of the pool of the Site's SiteClass, which the controller chooses.
	// +optional
	Pool *PooledPostgres `json:"pool,omitempty"`
}

// ExternalPostgres is an existing database. Several sites can share the database.
type ExternalPostgres struct {
	// secretRef names the Secret with the connection string of the database.
	// +required
	SecretRef DSNReference `json:"secretRef,omitzero"`
}

// DSNReference names a Secret of type paddock.health/dsn: in the Site's namespace for a Site, in the
// operator's namespace for a SiteClass. When the Secret changes, the controller checks the new
// connection, and the API servers change to it without a restart.
type DSNReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key is the key in the Secret's data that has the connection string, a URI such as
	// postgres://user:password@host:5432/database?sslmode=verify-full. Paddock connects with TLS
	// unless the URI has sslmode=disable. The Secret can also have ca.crt (trusted certificate
	// authorities), and tls.crt and tls.key (a client certificate). A further key with the ending
	// -replica, such as uri-replica, has the connection string of streaming standbys of the database.
	// They answer searches of clients that accept a lag. Default: uri.
	// +optional
	// +kubebuilder:default=uri
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterStorage has the limits of the records of a site that are stored in etcd. etcd rejects
// requests over 1.5 MiB by default, and all writes when its quota (2 GiB by default) is used up.
type ClusterStorage struct {
	// maxRecords is the maximum number of records of the site, at least 1. Deleted records do not
	// count. At the limit, creating a record fails with 507, and deletes still work. Default: 2000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRecords *int32 `json:"maxRecords,omitempty"`

	// maxVersions is the maximum number of superseded versions that are kept of each record, 0 to
	// 1000. Beyond it, the next write removes the oldest version. Default: 20.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxVersions *int32 `json:"maxVersions,omitempty"`

	// maxObjectSize is the maximum stored size in bytes of a record, and also of the history of a
	// record, 1Ki to 1Mi. A write of a larger record fails with 413. A larger history loses its
	// oldest versions. Default: 256Ki.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Mi')) <= 0",message="maxObjectSize must be between 1Ki and 1Mi"
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`

	// maxSize is the maximum total size in bytes of the site's records and histories, at least 1Ki.
	// At the limit, a write removes the oldest deleted records and the oldest superseded versions to
	// make room. If that is not enough, the write fails with 507. Deletes still work. Default: 64Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0",message="maxSize must be at least 1Ki"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`

	// maxPendingDeliveries is the maximum number of pending webhook deliveries, 1 to 10000. An event
	// has one delivery for each webhook. At the limit, requests that produce events fail with 429.
	// Such requests also fail when pending, failed and undelivered deliveries together reach ten
	// times the limit. Failed and undelivered deliveries count until spec.retention.deliveries has
	// passed. Default: 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxPendingDeliveries *int32 `json:"maxPendingDeliveries,omitempty"`
}

// Access selects which tokens a site accepts.
type Access struct {
	// kubernetes selects which tokens of the cluster's own issuer the site accepts.
	// +optional
	Kubernetes KubernetesAccess `json:"kubernetes,omitzero"`

	// issuers are OpenID Connect issuers whose tokens the site accepts, at most 8. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.url == b.url))",message="each issuer must have a url of its own"
	Issuers []Issuer `json:"issuers,omitempty"`

	// hidden makes the site respond with 404 instead of 403 to callers without any right on the site,
	// as if it did not exist. FHIR metadata then requires a token. Default: false.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}

// KubernetesAccess selects which ServiceAccount tokens a site accepts. kube-apiserver verifies these
// tokens by TokenReview. Valid tokens with the audience paddock.health/<namespace>/<name> of the Site
// are accepted whatever apiServerAudience is.
type KubernetesAccess struct {
	// apiServerAudience makes the site accept, in addition, tokens with the audience of
	// kube-apiserver, such as the tokens that are mounted into Pods by default. Paddock could use
	// such a token to act as the caller in the cluster. Default: false.
	// +optional
	APIServerAudience bool `json:"apiServerAudience,omitempty"`
}

// FHIR has the settings of the FHIR API of a site.
type FHIR struct {
	// updateCreate lets a PUT create a record with an id chosen by the client (R4 http.html#upsert). If
	// it is false, such a PUT fails with 405. Default: true.
	// +optional
	UpdateCreate *bool `json:"updateCreate,omitempty"`

	// unknownParameters selects how a search with unknown parameters is handled, unless the request
	// has the header Prefer with handling=strict or handling=lenient. Reject responds with 400.
	// Ignore runs the search without these parameters, so the result can have more records than
	// expected. Default: Reject.
	// +optional
	// +kubebuilder:default=Reject
	UnknownParameters UnknownParameters `json:"unknownParameters,omitempty"`

	// referentialIntegrity selects how references to missing records of this site are handled. Enforce
	// rejects writes with such references, and the deletion of referenced records. It requires
	// storage.type Postgres. Ignore does not check references. Default: Ignore.
	// +optional
	// +kubebuilder:default=Ignore
	ReferentialIntegrity ReferentialIntegrity `json:"referentialIntegrity,omitempty"`
}

// ReferentialIntegrity selects how writes with references to missing records are handled.
// +kubebuilder:validation:Enum=Ignore;Enforce
type ReferentialIntegrity string

const (
	// ReferentialIntegrityIgnore does not check references.
	ReferentialIntegrityIgnore ReferentialIntegrity = "Ignore"
	// ReferentialIntegrityEnforce rejects writes with references to missing records, and the deletion
	// of referenced records.
	ReferentialIntegrityEnforce ReferentialIntegrity = "Enforce"
)

// UnknownParameters selects how unknown search parameters are handled.
// +kubebuilder:validation:Enum=Reject;Ignore
type UnknownParameters string

const (
	// UnknownParametersReject responds with 400 to a search with unknown parameters.
	UnknownParametersReject UnknownParameters = "Reject"
	// UnknownParametersIgnore searches without the unknown parameters and lists them in the response.
	UnknownParametersIgnore UnknownParameters = "Ignore"
)

// Limits are the maximum rates and sizes of requests. Each API server counts requests on its own, so
// two replicas allow twice these rates.
type Limits struct {
	// requestsPerSecond is the maximum average rate of the site, 1 to 1000000. Beyond it, requests
	// fail with 429. Default: 5000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerSecond *int32 `json:"requestsPerSecond,omitempty"`

	// burst is how many requests the site accepts at once, in total and from each caller, before the
	// average rate applies, 1 to 1000000. Default: twice requestsPerSecond.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Burst *int32 `json:"burst,omitempty"`

	// callerRequestsPerSecond is the maximum average rate of each caller, 1 to 1000000. Beyond it, the
	// caller's requests fail with 429. Default: half of requestsPerSecond.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CallerRequestsPerSecond *int32 `json:"callerRequestsPerSecond,omitempty"`

	// concurrentSearches is the maximum number of searches, histories and lists of the site that run
	// concurrently in each API server, 1 to 10000. Further requests wait for up to two seconds and
	// then fail with 429. They fail at once if four times this number of requests wait, or twice this
	// number of requests of one caller. Default: 64.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	ConcurrentSearches *int32 `json:"concurrentSearches,omitempty"`

	// maxBodySize is the maximum size of a request body in bytes, 1Ki to 64Mi. A request with a larger
	// body fails with 413. Imports in the native format have a limit of their own. Default: 4Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Mi')) <= 0",message="maxBodySize must be between 1Ki and 64Mi"
	MaxBodySize *resource.Quantity `json:"maxBodySize,omitempty"`

	// maxBundleEntries is the maximum number of entries of a batch or transaction Bundle, 1 to 10000. A
	// larger Bundle fails with 413. Default: 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxBundleEntries *int32 `json:"maxBundleEntries,omitempty"`

	// maxIncluded is the maximum number of records that _include and _revinclude add to a page of
	// search results, 1 to 10000. Further records are omitted, and the response says so. Default:
	// 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxIncluded *int32 `json:"maxIncluded,omitempty"`

	// concurrentExports is the maximum number of bulk exports of the site whose files are being planned,
	// 1 to 100. Further requests for exports fail with 429. Default: 4.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ConcurrentExports *int32 `json:"concurrentExports,omitempty"`

	// maxEventsPerRequest is the maximum number of events in a request to publish events (POST
	// /ahds/v1/event), 1 to 500. A request with more fails with 400, and none of its events is
	// accepted. Default: 500.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	MaxEventsPerRequest *int32 `json:"maxEventsPerRequest,omitempty"`

	// maxPageSize is the maximum number of matches or versions on a page of a FHIR search or history,
	// 100 to 1000. A larger _count is reduced to it. It does not apply to AuditEvents. Default: 1000.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000
	MaxPageSize *int32 `json:"maxPageSize,omitempty"`
}

// SiteStatus is the state observed by the controller and the API servers.
type SiteStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the conditions of the Site, of the types Ready, Reconciling, Stalled, Accepted,
	// StorageReady, SchemaReady, Exposed, IndexReady, IssuersReady and StorageNearLimit.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// siteID is the path segment {siteId} that the Site holds, or, while the condition Accepted is
	// not true, the one that it will claim.
	// +optional
	SiteID string `json:"siteID,omitempty"`

	// siteKey is spec.siteKey of the SiteClaim for which StorageReady was computed. If the SiteClaim
	// has another siteKey, StorageReady is out of date.
	// +optional
	SiteKey string `json:"siteKey,omitempty"`

	// url is the base URL of the site. The FHIR API is at url + "/fhir". Links in responses begin
	// with this URL.
	// +optional
	URL string `json:"url,omitempty"`

	// database is the name of the database that has the site's records, in the pool of its SiteClass.
	// Only Sites with storage.postgres.pool have it.
	// +optional
	Database string `json:"database,omitempty"`

	// move is the SiteMove of the Site that is in progress, or unset. While move is set, only the
	// controller changes spec.storage.
	// +optional
	Move *SiteMoveReference `json:"move,omitempty"`
}

// Site configures the APIs and the records of one clinic: the path segment of its URL, storage, and
// rules for access. A namespace can have only one Site. A second Site gets the condition Accepted
// with status False.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Site ID",type=string,JSONPath=`.status.siteID`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.siteID) || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".spec.siteID",message="metadata.name cannot be the siteID: set spec.siteID to at most 63 letters a-z, digits and hyphens"
// +kubebuilder:validation:XValidation:rule="self.spec.storage.type == oldSelf.spec.storage.type || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching' || has(self.spec.className) && self.spec.className.size() > 0 && (!has(oldSelf.status) || !has(oldSelf.status.siteKey))",fieldPath=".spec.storage.type",message="storage.type is changed by a SiteMove only: kubectl paddock move"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.postgres) || !has(oldSelf.spec.storage.postgres) || has(self.spec.storage.postgres.external) == has(oldSelf.spec.storage.postgres.external) && has(self.spec.storage.postgres.pool) == has(oldSelf.spec.storage.postgres.pool) && (!has(self.spec.storage.postgres.pool) || self.spec.storage.postgres.pool == oldSelf.spec.storage.postgres.pool) || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching'",fieldPath=".spec.storage.postgres",message="storage.postgres is changed between external, provisioned and pool, or to another region, by a SiteMove only"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.postgres) || !has(self.spec.storage.postgres.provisioned) || !has(oldSelf.spec.storage.postgres) || !has(oldSelf.spec.storage.postgres.provisioned) || (has(self.spec.storage.postgres.provisioned.name) && self.spec.storage.postgres.provisioned.name == 'paddock-postgres-b') == (has(oldSelf.spec.storage.postgres.provisioned.name) && oldSelf.spec.storage.postgres.provisioned.name == 'paddock-postgres-b') || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching' || !has(oldSelf.status) || !has(oldSelf.status.siteKey)",fieldPath=".spec.storage.postgres.provisioned.name",message="storage.postgres.provisioned.name is changed by a SiteMove only"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.move) || self.status.move.phase == 'Switching' || self.spec.storage == oldSelf.spec.storage",fieldPath=".spec.storage",message="storage cannot be changed during a SiteMove: set spec.decision of the SiteMove first"
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. Its default is {}, so that the rules on its fields always apply.
	// +optional
	// +kubebuilder:default={}
	Spec SiteSpec `json:"spec,omitzero"`
	// +optional
	Status SiteStatus `json:"status,omitzero"`
}

// SiteID returns spec.siteID, or metadata.name if spec.siteID is unset.
func (s *Site) SiteID() string {
	if s.Spec.SiteID != "" {
		return s.Spec.SiteID
	}
	return s.Name
}

// Class returns the name of the Site's SiteClass, or "" if it has none.
func (s *Site) Class() string {
	if s.Spec.ClassName == nil {
		return ""
	}
	return *s.Spec.ClassName
}

// SiteList is a list of Sites.
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}
