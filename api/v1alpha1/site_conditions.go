package v1alpha1

// Condition types of a Site.
const (
	// ConditionReady is true if requests to the site can succeed.
	ConditionReady = "Ready"
	// ConditionReconciling is true while the controller is applying the spec (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true if the controller cannot continue until a person acts (kstatus).
	ConditionStalled = "Stalled"
	// ConditionAccepted is true if the Site holds its siteID and its namespace. On a Webhook or
	// WebhookEvent, it is true if the spec is valid.
	ConditionAccepted = "Accepted"
	// ConditionStorageReady is true if the storage can store records.
	ConditionStorageReady = "StorageReady"
	// ConditionSchemaReady is true if the database has the tables that this release needs. Only
	// Sites with storage.type Postgres have it.
	ConditionSchemaReady = "SchemaReady"
	// ConditionExposed is true if the Ingress for spec.exposure exists, or if the HTTPRoute for
	// spec.exposure exists and each of its Gateways has accepted it. Only Sites with spec.exposure
	// have it.
	ConditionExposed = "Exposed"
	// ConditionIndexReady is true if all records are indexed for the search parameters of this
	// release. It is false while records are reindexed after an upgrade. The API servers set it, only
	// on Sites with storage.type Postgres.
	ConditionIndexReady = "IndexReady"
	// ConditionIssuersReady is true if the keys of all issuers are known. If it is false, the message
	// names the issuers whose keys cannot be fetched, or says that the Site is not accepted. Only Sites
	// with spec.access.issuers have it.
	ConditionIssuersReady = "IssuersReady"
	// ConditionStorageNearLimit becomes true when the records or the size of a site reach 80 % of
	// maxRecords or maxSize of spec.storage.cluster, and false when both are below 75 %. A Site that
	// never reached 80 % does not have the condition. The API servers set it.
	ConditionStorageNearLimit = "StorageNearLimit"
)

// Reasons of the Accepted condition.
const (
	// ReasonAccepted means that the spec is valid. A Site with this reason also holds its siteID
	// and its namespace.
	ReasonAccepted = "Accepted"
	// ReasonSiteIDTaken means that another Site, or the retained data of a deleted Site, holds the
	// siteID.
	ReasonSiteIDTaken = "SiteIDTaken"
	// ReasonNamespaceOccupied means that the namespace has another Site, or the retained data of a
	// deleted Site.
	ReasonNamespaceOccupied = "NamespaceOccupied"
	// ReasonAwaitingMove means that the Site has spec.takeOver, and the SiteMove has not switched to it.
	ReasonAwaitingMove = "AwaitingMove"
	// ReasonSecretsForbidden means that the controller may not use the Secrets of the namespace. The
	// owner of the namespace must bind the ClusterRole in the message to the controller. Sites and
	// Webhooks have this reason.
	ReasonSecretsForbidden = "SecretsForbidden"
	// ReasonClassNotFound means that there is no SiteClass with the name in spec.className.
	ReasonClassNotFound = "ClassNotFound"
)

// Reasons of the StorageReady condition.
const (
	// ReasonClusterStorage means that records are stored as objects of the cluster.
	ReasonClusterStorage = "ClusterStorage"
	// ReasonPostgresStorage means that records are stored in a Postgres database.
	ReasonPostgresStorage = "PostgresStorage"
	// ReasonSecretNotFound means that a Secret does not exist or has the wrong type. The spec of a
	// Site or Webhook names the Secret, or the database of a pool or a provisioned database needs it.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonInvalidSecret means that a Secret has no valid connection string, signing secret or
	// client certificate, is too large, or has the name of a Secret that the controller needs but
	// another type.
	ReasonInvalidSecret = "InvalidSecret"
	// ReasonDatabaseUnreachable means that the controller cannot connect to the database, or that the
	// database cannot be used, for example because it is read-only or too old.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonForeignRecords means that the namespace has records or a database whose siteKey differs
	// from that of the Site's SiteClaim, a database of another engine or name, or retained data of
	// another storage.
	ReasonForeignRecords = "ForeignRecords"
	// ReasonNoCapacity means that no database of the class's pool has room for the Site, or that the
	// Site has no SiteClass with a pool.
	ReasonNoCapacity = "NoCapacity"
	// ReasonNotInPool means that the database with the site's records was removed from the pool of
	// its SiteClass.
	ReasonNotInPool = "NotInPool"
	// ReasonNotAccepted means that the condition Accepted is not true.
	ReasonNotAccepted = "NotAccepted"
)

// Further reasons of the StorageReady condition of a provisioned database.
const (
	// ReasonProvisioning means that the database is being created or recreated, or that the Site waits
	// for a database of its pool.
	ReasonProvisioning = "Provisioning"
	// ReasonPodPending means that the database's Pod cannot be scheduled. The message quotes the
	// scheduler.
	ReasonPodPending = "PodPending"
	// ReasonUnavailable means that no Pod of the database is ready.
	ReasonUnavailable = "Unavailable"
	// ReasonVolumeLost means that the PersistentVolume of the database no longer exists.
	ReasonVolumeLost = "VolumeLost"
	// ReasonMajorUpgrade means that the data was written by another major version of Postgres than
	// that in the spec.
	ReasonMajorUpgrade = "MajorUpgrade"
	// ReasonEngineMissing means that the CloudNativePG operator is not installed.
	ReasonEngineMissing = "EngineMissing"
	// ReasonRefused means that kube-apiserver rejected an object that the database or spec.exposure
	// needs.
	ReasonRefused = "Refused"
)

// Reasons of the SchemaReady condition.
const (
	// ReasonMigrated means that the database has the tables of this release.
	ReasonMigrated = "Migrated"
	// ReasonNewerSchema means that a later release changed the tables in a way that this release
	// does not support.
	ReasonNewerSchema = "NewerSchema"
	// ReasonMigrationFailed means that the migration failed and was rolled back.
	ReasonMigrationFailed = "MigrationFailed"
	// ReasonNoDatabase means that the controller has not connected to the database yet, so its tables
	// are unknown.
	ReasonNoDatabase = "NoDatabase"
)

// Reasons of the Exposed condition, in addition to NotAccepted and Refused.
const (
	// ReasonExposed means that the Ingress exists, or that every Gateway in spec.exposure has
	// accepted the HTTPRoute.
	ReasonExposed = "Exposed"
	// ReasonHostNotAllowed means that the operator does not allow the host name in
	// spec.exposure.ingress.host.
	ReasonHostNotAllowed = "HostNotAllowed"
	// ReasonGatewayNotAllowed means that the operator does not allow one of the Gateways in
	// spec.exposure.httpRoute.parentRefs.
	ReasonGatewayNotAllowed = "GatewayNotAllowed"
	// ReasonGatewayAPIMissing means that the CRDs of the Gateway API are not installed.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonRoutePending means that the HTTPRoute does not exist yet, or that a Gateway's controller has
	// not set a status on it.
	ReasonRoutePending = "RoutePending"
	// ReasonRouteNotAccepted means that a Gateway did not accept the HTTPRoute. The message quotes
	// the Gateway's controller.
	ReasonRouteNotAccepted = "RouteNotAccepted"
)

// Reasons of the IssuersReady condition, in addition to NotAccepted.
const (
	// ReasonKeysKnown means that the keys of all issuers are known.
	ReasonKeysKnown = "KeysKnown"
	// ReasonIssuerUnreachable means that an issuer cannot be reached, or that its response is not
	// usable.
	ReasonIssuerUnreachable = "IssuerUnreachable"
	// ReasonInvalidIssuer means that the Site's entry for an issuer, or the issuer's discovery
	// document or key set, is invalid.
	ReasonInvalidIssuer = "InvalidIssuer"
	// ReasonIssuerNotAllowed means that the address of an issuer is not public, and not in a network
	// that the operator allows.
	ReasonIssuerNotAllowed = "IssuerNotAllowed"
)

// Reasons of the IndexReady condition.
const (
	// ReasonIndexed means that all records are indexed for this release.
	ReasonIndexed = "Indexed"
	// ReasonIndexing means that records are being reindexed for the search parameters of this
	// release.
	ReasonIndexing = "Indexing"
)

// Further reasons of the Ready, Reconciling and Stalled conditions.
const (
	// ReasonServing means that requests to the site succeed.
	ReasonServing = "Serving"
	// ReasonPending means that the controller has not determined the status of the condition yet.
	ReasonPending = "Pending"
	// ReasonRetrying means that the last attempt to apply the spec or to delete the Site failed and
	// is retried. The controller's log has the error.
	ReasonRetrying = "Retrying"
	// ReasonDeleting means that the Site is being deleted.
	ReasonDeleting = "Deleting"
)
