package v1alpha1

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MovePhase is a phase of a SiteMove.
// +kubebuilder:validation:Enum=Pending;Copying;Draining;Pausing;CatchingUp;Switching;Switched;Completed;RollingBack;RolledBack
type MovePhase string

const (
	// MovePending means that the move has not begun. If the move cannot begin, the condition Stalled
	// has the reason.
	MovePending MovePhase = "Pending"
	// MoveCopying means that records are copied while the site serves reads and writes.
	MoveCopying MovePhase = "Copying"
	// MoveDraining means that no delivery to a webhook is started, so that deliveries in progress
	// end. The site serves reads and writes, and keeps the events of writes.
	MoveDraining MovePhase = "Draining"
	// MovePausing means that writes are refused, and that the storage that serves the site is being
	// locked against writes.
	MovePausing MovePhase = "Pausing"
	// MoveCatchingUp means that writes are refused while the last changes are copied and both storages
	// are compared.
	MoveCatchingUp MovePhase = "CatchingUp"
	// MoveSwitching means that writes are refused while the API servers change to the new storage, or
	// back to the former one in a rollback.
	MoveSwitching MovePhase = "Switching"
	// MoveSwitched means that the site is served from the new storage. The former storage is locked
	// and keeps its data until spec.decision is set.
	MoveSwitched MovePhase = "Switched"
	// MoveCompleted means that the move was confirmed and the data in the former storage was
	// deleted.
	MoveCompleted MovePhase = "Completed"
	// MoveRollingBack means that the copy is being deleted. The site is served from its former storage.
	// After a switch, the audit log and ended deliveries since then are first copied back.
	MoveRollingBack MovePhase = "RollingBack"
	// MoveRolledBack means that the move ended and the site is served from the storage that it had
	// before, or that the Site was deleted during the move.
	MoveRolledBack MovePhase = "RolledBack"
)

// PausesWrites reports whether a site refuses writes in the phase.
func (p MovePhase) PausesWrites() bool {
	return p == MovePausing || p == MoveCatchingUp || p == MoveSwitching
}

// StopsDeliveries reports whether the deliveries of a site are stopped in the phase: deliveries in
// progress end, and no other delivery is started.
func (p MovePhase) StopsDeliveries() bool { return p == MoveDraining || p.PausesWrites() }

// Ended reports whether the phase is final: MoveCompleted or MoveRolledBack.
func (p MovePhase) Ended() bool { return p == MoveCompleted || p == MoveRolledBack }

// MoveDirection is the direction in which data is copied.
// +kubebuilder:validation:Enum=Forward;Back
type MoveDirection string

const (
	// MoveForward is the direction from the former storage of the Site to the new one.
	MoveForward MoveDirection = "Forward"
	// MoveBack is the direction from the new storage to the former one, after a switch.
	MoveBack MoveDirection = "Back"
)

// MoveDecision is how a move ends, as the administrator decides.
// +kubebuilder:validation:Enum=Confirm;RollBack
type MoveDecision string

const (
	// MoveConfirm deletes the data in the former storage after the switch.
	MoveConfirm MoveDecision = "Confirm"
	// MoveRollBack returns to the former storage, with all writes since the switch.
	MoveRollBack MoveDecision = "RollBack"
)

// Reasons of the conditions of a SiteMove.
const (
	// ReasonMoving means that the move is in progress.
	ReasonMoving = "Moving"
	// ReasonAwaitingDecision means that the site is served from the new storage, and spec.decision
	// is not set.
	ReasonAwaitingDecision = "AwaitingDecision"
	// ReasonMoved means that the move was confirmed. A Site has it in the condition Accepted if another
	// Site has taken over its siteID and data.
	ReasonMoved = "Moved"
	// ReasonRolledBack means that the move ended and the site is served from the storage that it had
	// before, or that the Site was deleted during the move.
	ReasonRolledBack = "RolledBack"
	// ReasonSiteNotReady means that the Site of spec.siteName does not exist in the namespace, is
	// not ready, or is paused.
	ReasonSiteNotReady = "SiteNotReady"
	// ReasonMoveInProgress means that another SiteMove of the Site, or of the Site of spec.toSite, has not
	// ended.
	ReasonMoveInProgress = "MoveInProgress"
	// ReasonTargetOccupied means that the database of spec.to already has data of the Site, or is its
	// current database, or that the namespace has a provisioned database that the move did not
	// create.
	ReasonTargetOccupied = "TargetOccupied"
	// ReasonTargetNotReady means that the Site of spec.toSite does not exist, is not ready, or does not
	// agree to the move by spec.takeOver. It also means that the move between the storages of both Sites is
	// not supported.
	ReasonTargetNotReady = "TargetNotReady"
	// ReasonWebhooksMissing means that the namespace to which the Site moves lacks a Webhook or
	// WebhookEvent of the namespace that it leaves.
	ReasonWebhooksMissing = "WebhooksMissing"
	// ReasonCopyFailed means that the data cannot be copied to the new storage, or back in a
	// rollback. The message has the error.
	ReasonCopyFailed = "CopyFailed"
)

// SiteMoveFinalizer is the finalizer of SiteMoves that have begun and not ended.
const SiteMoveFinalizer = "paddock.health/sitemove"

// FencedLabel is the label that the controller sets on a namespace while the records of its Site in
// etcd must not be written, because a SiteMove has paused writes or switched to another storage. The
// policy paddock-moved-records refuses these writes.
const FencedLabel = "paddock.health/records-fenced"

// MoveToName returns the name of the connection Secret for the new storage of a SiteMove in a namespace.
func MoveToName(namespace string) string { return ConnectionName(namespace) + ".move-to" }

// MoveFromName returns the name of the connection Secret for the former database of the Site in a
// namespace during a SiteMove. Only Sites that had storage.type Postgres have it.
func MoveFromName(namespace string) string { return ConnectionName(namespace) + ".move-from" }

// SiteName names a Site of any namespace.
type SiteName struct {
	// namespace is the namespace of the Site.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the Site.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// SiteMoveSpec selects the Site to move and its new storage.
// +kubebuilder:validation:XValidation:rule="has(self.to) != has(self.toSite)",message="exactly one of to and toSite must be given"
// +kubebuilder:validation:XValidation:rule="self.siteName == oldSelf.siteName && has(self.to) == has(oldSelf.to) && (!has(self.to) || self.to == oldSelf.to) && has(self.toSite) == has(oldSelf.toSite) && (!has(self.toSite) || self.toSite == oldSelf.toSite)",message="siteName, to and toSite are immutable: delete the SiteMove and create another one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.decision) || has(self.decision) && self.decision == oldSelf.decision",fieldPath=".decision",message="decision cannot be changed once it is set"
type SiteMoveSpec struct {
	// siteName is the name of the Site in the namespace of the SiteMove. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SiteName string `json:"siteName,omitempty"`

	// to is the new storage, of type Postgres. It becomes spec.storage of the Site. A provisioned
	// database is created for the move, and deleted if the move is rolled back. It has another name than
	// the current database. With pool, the controller chooses a database of the pool of the Site's
	// class, other than the current one. Exactly one of to and toSite is given. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type == 'Postgres'",message="only a move to storage.type Postgres is supported"
	To Storage `json:"to,omitzero"`

	// toSite is the Site of another namespace that takes over siteID and data. Its spec.takeOver must
	// name the Site of this SiteMove. Its spec.storage is the new storage, which must have
	// postgres.external. Immutable.
	// +optional
	ToSite *SiteName `json:"toSite,omitempty"`

	// decision ends the move. Confirm deletes the data in the former storage after the switch.
	// RollBack deletes the copy in the new storage; after the switch, the writes since the switch are
	// first copied back. If unset, the data in both storages is kept. Once set, decision cannot be
	// changed.
	// +optional
	Decision MoveDecision `json:"decision,omitempty"`
}

// MoveCopy is the progress of the copy, as reported by the API server that copies.
type MoveCopy struct {
	// direction is the direction of the copy at the time of this report.
	// +optional
	Direction MoveDirection `json:"direction,omitempty"`
	// phase is the phase of the move at the time of this report.
	// +optional
	Phase MovePhase `json:"phase,omitempty"`
	// worker is the name of the API server that copies.
	// +optional
	Worker string `json:"worker,omitempty"`
	// pass is the number of passes that the worker has begun in its current attempt at the work of the
	// phase. The first passes compare all records of both storages and copy those that differ. Later
	// passes compare only records that have changed.
	// +optional
	Pass int32 `json:"pass,omitempty"`
	// compared is the number of records, tombstones included, that the current pass has compared.
	// +optional
	Compared int64 `json:"compared,omitempty"`
	// total is the number of live records of the site, which may be an estimate.
	// +optional
	Total int64 `json:"total,omitempty"`
	// copied is the number of records that this worker has copied in this phase, in all passes.
	// +optional
	Copied int64 `json:"copied,omitempty"`
	// done is true if the API server has finished its work for phase.
	// +optional
	Done bool `json:"done,omitempty"`
	// failed is the error because of which the work of the phase cannot be done, or empty. Temporary
	// errors are retried and not reported.
	// +optional
	Failed string `json:"failed,omitempty"`
	// records is the number of live records that each storage had at the end of the pause. It is 0 if
	// counting would have taken longer than 5 s.
	// +optional
	Records int64 `json:"records,omitempty"`
	// tombstones is the number of tombstones that each storage had at the end of the pause. It is 0 if
	// counting would have taken longer than 5 s.
	// +optional
	Tombstones int64 `json:"tombstones,omitempty"`
	// digest is the SHA-256 of the list of all records and their newest versions, as of the last pass that
	// compared all of them.
	// +optional
	Digest string `json:"digest,omitempty"`
	// marks is the moment since which only changed records need to be compared. It is set after a pass that
	// compared all records.
	// +optional
	Marks *MoveMarks `json:"marks,omitempty"`
	// changesLost is true if it is not known which records have changed since marks, or if the storages
	// have different numbers of records. All records must be compared again, for which the move returns to
	// Copying. After the third pause, the move is rolled back instead, or a rollback begins again later.
	// +optional
	ChangesLost bool `json:"changesLost,omitempty"`
	// deliveries is the number of pending webhook deliveries that were copied.
	// +optional
	Deliveries int64 `json:"deliveries,omitempty"`
}

// MoveMarks is a moment at which both storages were compared.
type MoveMarks struct {
	// source is the position in the log of changes of the storage that serves the Site.
	// +optional
	Source string `json:"source,omitempty"`
	// target is the position in the log of changes of the other storage.
	// +optional
	Target string `json:"target,omitempty"`
	// latest is the time of the latest version that was compared.
	// +optional
	Latest *metav1.MicroTime `json:"latest,omitempty"`
}

// SiteMoveStatus is the observed state of a SiteMove.
type SiteMoveStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are of the types Ready, Reconciling and Stalled. Ready is true if the move has ended or
	// awaits a decision.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is the current phase of the move.
	// +optional
	Phase MovePhase `json:"phase,omitempty"`

	// direction is Back while the move is rolled back after a switch, and Forward otherwise.
	// +optional
	Direction MoveDirection `json:"direction,omitempty"`

	// progress is the progress of the current phase as a text for people, such as 42 %.
	// +optional
	Progress string `json:"progress,omitempty"`

	// phaseTime is when phase last changed.
	// +optional
	PhaseTime *metav1.MicroTime `json:"phaseTime,omitempty"`

	// from is the storage of the Site before the move.
	// +optional
	From *Storage `json:"from,omitempty"`

	// toSiteUID is the UID of the Site of spec.toSite when the move began to copy.
	// +optional
	ToSiteUID types.UID `json:"toSiteUID,omitempty"`

	// provisionedName is the name of the objects of the database that the move creates. Only moves to a
	// provisioned database have it.
	// +optional
	ProvisionedName string `json:"provisionedName,omitempty"`

	// placement is the pool database to which the data is moved. It is set only for moves to a pool.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// formerPlacement is the database of a pool that has the data before a move to a pool. It is unset if
	// the Site was in no pool.
	// +optional
	FormerPlacement *Placement `json:"formerPlacement,omitempty"`

	// siteKey is the key of the site's data.
	// +optional
	SiteKey string `json:"siteKey,omitempty"`

	// dataID identifies the data of the site in the new database. It is set after the switch. In a database
	// that was created again, the data has another ID, so the move is neither confirmed with it nor returns
	// from it: both would delete the records of the former storage.
	// +optional
	DataID string `json:"dataID,omitempty"`

	// pausedTime is when the last pause of writes began.
	// +optional
	PausedTime *metav1.MicroTime `json:"pausedTime,omitempty"`

	// resumedTime is when the last pause of writes ended.
	// +optional
	ResumedTime *metav1.MicroTime `json:"resumedTime,omitempty"`

	// pauses is the number of pauses of writes in this direction. If all records must be compared again
	// after the third one, the move is rolled back, or a rollback begins again later.
	// +optional
	Pauses int32 `json:"pauses,omitempty"`

	// failure is the error because of which the move was rolled back without a decision, or empty.
	// +optional
	Failure string `json:"failure,omitempty"`

	// copy is the progress of the copy, as reported by the API server that copies.
	// +optional
	Copy *MoveCopy `json:"copy,omitempty"`
}

// SiteMove moves the data of a Site to another storage, or to a Site of another namespace, under the
// same siteID and URL.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Site",type=string,JSONPath=`.spec.siteName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SiteMove struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SiteMoveSpec `json:"spec,omitzero"`
	// +optional
	Status SiteMoveStatus `json:"status,omitzero"`
}

// SiteMoveList is a list of SiteMoves.
// +kubebuilder:object:root=true
type SiteMoveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SiteMove `json:"items"`
}

// SiteMoveReference is the state of a SiteMove in the status of its Site.
type SiteMoveReference struct {
	// name is the name of the SiteMove.
	Name string `json:"name"`
	// uid is the UID of the SiteMove.
	UID string `json:"uid"`
	// phase is status.phase of the SiteMove. The API servers act on it.
	Phase MovePhase `json:"phase"`
	// direction is status.direction of the SiteMove. The API servers act on it.
	Direction MoveDirection `json:"direction"`
	// namespace is the namespace of the SiteMove, if it is not that of the Site.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// elsewhere is true while the other Site of a SiteMove with spec.toSite holds the siteID. API servers
	// then refuse writes to this Site.
	// +optional
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// NamespaceOr returns the namespace of the SiteMove, given that of the Site.
func (r *SiteMoveReference) NamespaceOr(site string) string { return cmp.Or(r.Namespace, site) }

// PausesWrites reports whether API servers refuse writes to the Site.
func (r *SiteMoveReference) PausesWrites() bool { return r.Elsewhere || r.Phase.PausesWrites() }

// copyPhases are the phases in which an API server copies, whatever the direction.
var copyPhases = []MovePhase{MoveCopying, MoveCatchingUp, MoveSwitched}

// Copies reports whether an API server has data to copy: records and pending deliveries, or, after
// a switch, the audit log and ended deliveries.
func (r *SiteMoveReference) Copies() bool {
	return slices.Contains(copyPhases, r.Phase) || r.Returned()
}

// Returned reports whether the Site is served from its former storage again, after a switch.
func (r *SiteMoveReference) Returned() bool {
	return r.Phase == MoveRollingBack && r.Direction == MoveBack
}
