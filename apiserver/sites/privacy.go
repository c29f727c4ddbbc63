package sites

import (
	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
)

// privacyOf returns the privacy rules of a Site.
func privacyOf(spec *sitesv1.SiteSpec) *privacy.Rules {
	rules := &privacy.Rules{Closed: spec.Privacy.Default == sitesv1.PrivacyClosed}
	for _, issuer := range spec.Access.Issuers {
		rules.Issuers = append(rules.Issuers, issuer.Name)
	}
	for _, rule := range spec.Privacy.Rules {
		types := make([]string, len(rule.Match.Types))
		for i, name := range rule.Match.Types {
			types[i] = string(name)
		}
		rules.Rules = append(rules.Rules, privacy.Rule{
			Name: rule.Name, Security: codingsOf(rule.Match.Security), Tags: codingsOf(rule.Match.Tag),
			Profiles: rule.Match.Profile, Types: types, Allow: callersOf(rule.Allow), Deny: callersOf(rule.Deny),
		})
	}
	rules.Remember()
	return rules
}

func codingsOf(spec []sitesv1.PrivacyCoding) []privacy.Coding {
	codings := make([]privacy.Coding, len(spec))
	for i, coding := range spec {
		codings[i] = privacy.Coding{System: coding.System, Code: coding.Code}
	}
	return codings
}

func callersOf(spec *sitesv1.PrivacyCallers) *privacy.Callers {
	if spec == nil {
		return nil
	}
	return &privacy.Callers{Groups: spec.Groups, Scopes: spec.Scopes}
}
