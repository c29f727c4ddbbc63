package v1alpha1

// Privacy decides which records a caller sees, in addition to the caller's rights on resource types.
// A record is visible if none of the rules that match it has a deny that selects the caller, and the
// allow of each of these rules, if set, selects the caller. A record with the confidentiality R or V
// (http://terminology.hl7.org/CodeSystem/v3-Confidentiality) is visible only to callers with the verb
// "privileged" on the resource, unless it matches a rule with allow whose match.security names that
// label.
type Privacy struct {
	// default selects who can see records that no rule matches. Open shows such records to all
	// callers with the right to the resource. Closed shows them only to callers with the verb
	// "privileged" on the resource. Default: Open.
	// +optional
	// +kubebuilder:default=Open
	Default PrivacyDefault `json:"default,omitempty"`

	// rules protect the records that they match, at most 64. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rules []PrivacyRule `json:"rules,omitempty"`
}

// PrivacyDefault selects who can see records that no rule matches.
// +kubebuilder:validation:Enum=Open;Closed
type PrivacyDefault string

const (
	// PrivacyOpen shows records that no rule matches to all callers with the right to the resource.
	PrivacyOpen PrivacyDefault = "Open"
	// PrivacyClosed shows records that no rule matches only to callers with the verb "privileged" on
	// the resource.
	PrivacyClosed PrivacyDefault = "Closed"
)

// PrivacyRule protects the records that it matches.
// +kubebuilder:validation:XValidation:rule="has(self.allow) || has(self.deny)",message="a rule needs allow or deny"
type PrivacyRule struct {
	// name identifies the rule in audit entries.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// match selects records. All fields that are set must match. An unset field does not restrict the
	// match, so an empty match selects all records.
	// +optional
	Match PrivacyMatch `json:"match,omitzero"`

	// allow selects the callers that can see the records. Other callers cannot see them. If unset,
	// all callers can see the records, except those that deny selects.
	// +optional
	Allow *PrivacyCallers `json:"allow,omitempty"`

	// deny selects callers that cannot see the records, even if allow of this or another rule selects
	// them. If unset, no caller is denied.
	// +optional
	Deny *PrivacyCallers `json:"deny,omitempty"`
}

// PrivacyMatch selects the records that match all of its lists. A list matches a record if one of the
// values in the list matches. An empty list matches all records.
type PrivacyMatch struct {
	// security lists security labels, at most 32. A record matches if meta.security has one of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Security []PrivacyCoding `json:"security,omitempty"`

	// tag lists tags, at most 32. A record matches if meta.tag has one of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tag []PrivacyCoding `json:"tag,omitempty"`

	// profile lists canonical URLs of profiles, at most 32. A record matches if meta.profile has one
	// of them. A URL without a version matches all versions of the profile.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Profile []string `json:"profile,omitempty"`

	// types lists FHIR resource types, at most 32. A record matches if its type is in the list.
	// Patient stands for Person, Practitioner and RelatedPerson too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Types []PrivacyType `json:"types,omitempty"`
}

// PrivacyType is a FHIR resource type that a site stores.
// +kubebuilder:validation:Enum=Device;DeviceDefinition;DeviceMetric;Endpoint;Group;HealthcareService;Location;Organization;OrganizationAffiliation;Patient;Person;Practitioner;PractitionerRole;RelatedPerson
type PrivacyType string

// PrivacyCoding selects codings by their code and, if system is set, by their system.
type PrivacyCoding struct {
	// system is the code system. If unset, the code matches in every system.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	System string `json:"system,omitempty"`

	// code is the code of the label or tag. Case is ignored.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Code string `json:"code,omitempty"`
}

// PrivacyCallers selects callers: those in one of the groups, and those whose token has one of
// the scopes.
type PrivacyCallers struct {
	// groups are groups of callers, at most 64. Each group is written as name (a group in the tokens
	// of any of the Site's issuers, without the prefix site:<namespace>:), issuer/name (a group of
	// one issuer), or kubernetes:name (a group of the cluster).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`

	// scopes are values in the "scope" claim of a token, compared exactly, at most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Scopes []string `json:"scopes,omitempty"`
}
