package privacy

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Rights are those of a caller's rights to one resource type that affect privacy rules.
type Rights struct {
	// Privileged shows the caller records with the confidentiality R or V, and those that
	// Rules.Closed hides, unless a rule hides them.
	Privileged bool
	// BreaksGlass shows the caller records that Allow of a rule, or the lack of Privileged, would
	// hide. It does not override Deny.
	BreaksGlass bool
}

// View determines which records of a Site one caller sees.
type View struct {
	Rules  *Rules
	Caller access.Caller
	// Rights returns the caller's rights to a resource type.
	Rights func(recordType string) (Rights, error)
	// Reads reports whether the caller may get or list records of a type.
	Reads func(recordType string) (bool, error)
}

// Condition returns the condition under which records of a type are visible. The condition consists
// of store.All, store.Any, store.Not, store.HasLabel and store.LinksTo. Errors: those of Rights and Reads.
func (v *View) Condition(recordType string) (store.Condition, error) {
	rights, err := v.Rights(recordType)
	if err != nil {
		return nothing, err
	}
	own := v.own(recordType, rights).condition // condition_cache.go
	if !HasLinks(recordType) {
		return own, nil
	}
	links, err := v.links(recordType)
	if err != nil {
		return nothing, err
	}
	if parts, several := own.(store.All); several {
		return all(append([]store.Condition{links}, parts...)...), nil
	}
	return all(links, own), nil
}

// AppendText appends the text form of Condition(recordType) to text. Errors: those of Rights and Reads.
func (v *View) AppendText(text []byte, recordType string) ([]byte, error) {
	if HasLinks(recordType) {
		condition, err := v.Condition(recordType)
		return AppendText(text, condition), err
	}
	rights, err := v.Rights(recordType)
	if err != nil {
		return text, err
	}
	own := v.own(recordType, rights)
	if own.text == nil {
		return AppendText(text, own.condition), nil
	}
	return append(text, own.text...), nil
}

// compile returns the condition of a type, without the condition on links.
func (v *View) compile(recordType string, rights Rights) store.Condition {
	parts := []store.Condition{v.byDefault(recordType, rights)}
	for i := range v.Rules.Rules {
		if rule := &v.Rules.Rules[i]; rule.appliesTo(recordType) && v.blocks(rule, rights) {
			parts = append(parts, not(rule.match()))
		}
	}
	for level := range restricted {
		parts = append(parts, v.byConfidentiality(recordType, level, rights))
	}
	return all(parts...)
}

// blocks reports whether a rule hides the records that it matches from the caller.
func (v *View) blocks(rule *Rule, rights Rights) bool {
	if rule.Deny.includes(v.Caller, v.Rules.Issuers) {
		return true
	}
	return rule.Allow != nil && !rights.BreaksGlass && !rule.Allow.includes(v.Caller, v.Rules.Issuers)
}

// byDefault returns the condition of a Closed Site: a rule matches the record, or the caller is
// privileged or breaks the glass.
func (v *View) byDefault(recordType string, rights Rights) store.Condition {
	if !v.Rules.Closed || rights.Privileged || rights.BreaksGlass {
		return everything
	}
	var matched []store.Condition
	for i := range v.Rules.Rules {
		if rule := &v.Rules.Rules[i]; rule.appliesTo(recordType) {
			matched = append(matched, rule.match())
		}
	}
	return anyOf(matched...)
}

// byConfidentiality returns the condition that hides records of a level from callers who are
// neither privileged nor break the glass. A record stays visible if it matches a rule with Allow
// that names the level. The rule may also name a higher level if its Allow includes the caller.
func (v *View) byConfidentiality(recordType string, level int, rights Rights) store.Condition {
	if rights.Privileged || rights.BreaksGlass {
		return everything
	}
	alternatives := []store.Condition{not(isRestricted(level))}
	for i := range v.Rules.Rules {
		rule := &v.Rules.Rules[i]
		if rule.Allow == nil || !rule.appliesTo(recordType) {
			continue
		}
		admitted := rule.Allow.includes(v.Caller, v.Rules.Issuers)
		if slices.ContainsFunc(rule.confidentiality(), func(named int) bool { return named == level || named > level && admitted }) {
			alternatives = append(alternatives, rule.matchWithoutSecurity())
		}
	}
	return anyOf(alternatives...)
}

// links returns the condition on the records to which those of a type link.
func (v *View) links(recordType string) (store.Condition, error) {
	var parts []store.Condition
	for _, param := range LinkParams(recordType) {
		target := linkParams[recordType][param]
		where, err := v.Condition(target)
		if err != nil {
			return nothing, err
		}
		if target == "Patient" { // a Device of a Patient needs rights to Patients, too
			reads, err := v.Reads(target)
			if err != nil {
				return nothing, err
			}
			if !reads {
				where = nothing
			}
		}
		if !store.IsEverything(where) {
			parts = append(parts, store.LinksTo{Param: param, Type: target, Where: where})
		}
	}
	return all(parts...), nil
}

// Lowers reports whether a change of labels lowers the protection of a record. This is so if its
// confidentiality falls from V or R, or a rule no longer matches it.
func (r *Rules) Lowers(recordType string, before, after store.Labels) bool {
	for level := range slices.Backward(restricted) {
		if holds(isRestricted(level), after) {
			break // at this level or above
		}
		if holds(isRestricted(level), before) {
			return true
		}
	}
	for i := range r.Rules {
		if rule := &r.Rules[i]; rule.appliesTo(recordType) && holds(rule.match(), before) && !holds(rule.match(), after) {
			return true
		}
	}
	return false
}

// Restricts reports whether a version with these labels is hidden from some callers who may read
// records of its type. This is so if a rule with Deny matches the version, or if it is hidden from
// an unprivileged caller without groups and scopes. Restricts does not follow links. A version
// whose visibility depends on a link counts as hidden.
func (r *Rules) Restricts(recordType string, labels store.Labels) bool {
	for i := range r.Rules {
		if rule := &r.Rules[i]; rule.Deny != nil && rule.appliesTo(recordType) && holds(rule.match(), labels) {
			return true
		}
	}
	anyone := View{
		Rules: r, Rights: func(string) (Rights, error) { return Rights{}, nil }, Reads: func(string) (bool, error) { return true, nil },
	}
	condition, err := anyone.Condition(recordType)
	return err != nil || !Holds(condition, labels, func(store.LinksTo, store.Link) bool { return false })
}

// HiddenBy returns what hides a version with these labels from the caller, for the audit log. The
// result is the name of a rule, "confidentiality", "default", or "error" if Rights fails. If none
// of these hides the version, HiddenBy returns "link" for types with links, without following the
// links, and "" for other types.
func (v *View) HiddenBy(recordType string, labels store.Labels) string {
	rights, err := v.Rights(recordType)
	if err != nil {
		return "error"
	}
	for i := range v.Rules.Rules {
		if rule := &v.Rules.Rules[i]; rule.appliesTo(recordType) && v.blocks(rule, rights) && holds(rule.match(), labels) {
			return rule.Name
		}
	}
	for level := range restricted {
		if !holds(v.byConfidentiality(recordType, level, rights), labels) {
			return "confidentiality"
		}
	}
	if !holds(v.byDefault(recordType, rights), labels) {
		return "default"
	}
	if HasLinks(recordType) {
		return "link"
	}
	return ""
}

// holds evaluates a condition as if all linked records met the conditions on them.
func holds(condition store.Condition, labels store.Labels) bool {
	return Holds(condition, labels, func(store.LinksTo, store.Link) bool { return true })
}
