package privacy

import (
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// ConfidentialitySystem is the code system of confidentiality labels, ordered
// U < L < M < N < R < V. R4 valueset-security-labels.html.
const ConfidentialitySystem = "http://terminology.hl7.org/CodeSystem/v3-Confidentiality"

// restricted are the confidentiality codes that need the verb "privileged" unless a rule allows the
// caller. The order is ascending: a caller to whom a rule shows records with one code may also see
// records that have an earlier code and match the tags, profiles and types of the rule.
var restricted = []string{"R", "V"}

// Rules are the privacy rules of a Site.
type Rules struct {
	// Closed hides records that no rule matches from callers who are not privileged.
	Closed bool
	// Issuers are the names of the Site's issuers. A rule can restrict a group to one issuer, in the
	// form issuer/group.
	Issuers []string
	Rules   []Rule

	// cache, if set, keeps the compiled conditions.
	cache *conditionCache
}

// Rule restricts who may see the records that it matches.
type Rule struct {
	Name string
	// Security, Tags, Profiles and Types select records. A record must match at least one element of
	// each of these lists that is not empty.
	Security, Tags  []Coding
	Profiles, Types []string
	// Allow lists the callers who may see the records. Nil allows all callers.
	Allow *Callers
	// Deny lists callers who may not see the records. Deny takes precedence over Allow of any rule.
	// Nil denies no callers.
	Deny *Callers
}

// Coding selects codings by Code and, if System is not empty, by System.
type Coding struct{ System, Code string }

// Callers selects the callers that have at least one of the groups or scopes.
type Callers struct{ Groups, Scopes []string }

// kubernetesPrefix marks a group of the cluster in a rule.
const kubernetesPrefix = "kubernetes:"

// includes reports whether a caller is selected. A nil Callers selects none.
func (c *Callers) includes(caller access.Caller, issuers []string) bool {
	if c == nil {
		return false
	}
	inGroup := func(group string) bool {
		if name, ok := strings.CutPrefix(group, kubernetesPrefix); ok {
			return caller.Issuer == "" && slices.Contains(caller.Groups, name)
		}
		if issuer, name, ok := strings.Cut(group, "/"); ok && slices.Contains(issuers, issuer) {
			return caller.Issuer == issuer && slices.Contains(caller.IssuerGroups, name)
		}
		return caller.Issuer != "" && slices.Contains(caller.IssuerGroups, group)
	}
	return slices.ContainsFunc(c.Groups, inGroup) ||
		slices.ContainsFunc(c.Scopes, func(scope string) bool { return slices.Contains(caller.Scopes, scope) })
}

// appliesTo reports whether a rule can match records of a type. A rule for Patients also applies to
// Person, Practitioner and RelatedPerson.
func (r *Rule) appliesTo(recordType string) bool {
	switch {
	case len(r.Types) == 0 || slices.Contains(r.Types, recordType):
		return true
	case recordType == "Person" || recordType == "Practitioner" || recordType == "RelatedPerson":
		return slices.Contains(r.Types, "Patient")
	default:
		return false
	}
}

// match returns the condition under which the rule matches a record of a type to which it applies.
func (r *Rule) match() store.Condition {
	return all(r.matchSecurity(), r.matchWithoutSecurity())
}

// matchSecurity is match with the security labels alone. A coding of the confidentiality R or V also
// matches labels without a system, as isRestricted does. Otherwise, a rule that names the level
// would exempt a record with such a label from the verb "privileged" (byConfidentiality) without
// restricting it.
func (r *Rule) matchSecurity() store.Condition {
	var labels store.Any
	for _, coding := range r.Security {
		labels = append(labels, coding.label(paramSecurity))
		if coding.System != "" && coding.level() >= 0 {
			labels = append(labels, store.HasLabel(codingLabel(paramSecurity, "", coding.Code)))
		}
	}
	return anyUnlessEmpty(labels)
}

// matchWithoutSecurity is match without the security labels.
func (r *Rule) matchWithoutSecurity() store.Condition {
	var profiles store.Any
	for _, profile := range r.Profiles {
		profiles = append(profiles, store.HasLabel(profileLabel(profile)))
	}
	return all(labelled(paramTag, r.Tags), anyUnlessEmpty(profiles))
}

func labelled(param string, codings []Coding) store.Condition {
	var labels store.Any
	for _, coding := range codings {
		labels = append(labels, coding.label(param))
	}
	return anyUnlessEmpty(labels)
}

// confidentiality returns the levels of the rule's security labels.
func (r *Rule) confidentiality() []int {
	var levels []int
	for _, coding := range r.Security {
		if level := coding.level(); level >= 0 {
			levels = append(levels, level)
		}
	}
	return levels
}

// level returns the index in restricted of the confidentiality that a coding can select, or -1.
func (c Coding) level() int {
	if c.System != "" && c.System != ConfidentialitySystem {
		return -1
	}
	return slices.Index(restricted, strings.ToUpper(c.Code))
}

// isRestricted returns the condition that a record has a confidentiality label of a level. A label
// without a system counts, because it is probably meant as a confidentiality label.
func isRestricted(level int) store.Condition {
	code := restricted[level]
	return store.Any{Coding{ConfidentialitySystem, code}.label(paramSecurity), store.HasLabel(codingLabel(paramSecurity, "", code))}
}
