package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/sites"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxReason is the maximum length in bytes of a break-glass reason. A request with a longer reason is
// refused. The note of a Kubernetes Event, which has the reason, is limited to 1024 bytes.
const maxReason = 512

// RBAC verbs of privacy rules.
const (
	verbPrivileged = "privileged"
	verbBreakGlass = "breakglass"
)

// errUnadmitted refuses restricted records to requests without a caller.
var errUnadmitted = errors.New("records that privacy rules restrict need an authenticated caller")

// reasonIn returns the reason in the values of the break-glass header. It is empty if there are
// none. Bytes that are not UTF-8 become question marks, because another encoding must not cost time in an emergency.
// Errors: *access.HeaderError.
func reasonIn(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", &access.HeaderError{Name: access.BreakGlassHeader, Problem: "the header is given more than once; send it once"}
	}
	reason := strings.TrimSpace(values[0])
	switch {
	case reason == "":
		return "", &access.HeaderError{Name: access.BreakGlassHeader, Problem: "the reason is empty; state why access to the record is needed"}
	case len(reason) > maxReason:
		return "", &access.HeaderError{Name: access.BreakGlassHeader, Problem: fmt.Sprintf("the reason has %d bytes; shorten it to at most %d", len(reason), maxReason)}
	case strings.ContainsFunc(reason, unicode.IsControl):
		return "", &access.HeaderError{Name: access.BreakGlassHeader, Problem: "the reason has control characters; remove them"}
	}
	return strings.ToValidUTF8(reason, "?"), nil
}

// openGate returns the store of a Site as a caller may use it. It is nil while the Site's store is
// not open.
func (a *admission) openGate(ctx context.Context, site sites.ServedSite, caller access.Caller, reason string) (store.Restricted, error) {
	v := &viewer{admission: a, ctx: ctx, site: site, caller: caller, reason: reason, rightsByType: map[string]privacy.Rights{}}
	return a.gateOf(site, gate.Options{
		View:         &privacy.View{Rules: site.Privacy, Caller: caller, Rights: v.rightsTo, Reads: v.reads},
		Restrict:     v.restrict,
		Unprivileged: v.unprivileged,
	})
}

// checkPrivileged returns an error unless the caller has the verb "privileged" on every FHIR type.
// Errors: *access.ForbiddenError, access.ErrUnavailable.
func (a *admission) checkPrivileged(ctx context.Context, site sites.ServedSite, caller access.Caller) error {
	for _, kind := range r4.Types {
		action := access.Action{Verb: verbPrivileged, Group: r4.Group, Resource: kind.Resource}
		if err := a.rights.Authorize(ctx, caller, site.Access, action); err != nil {
			return err
		}
	}
	return nil
}

// closedGate returns the store of a Site for requests without a caller. It gives no access to
// records of types with privacy rules. It is nil while the Site's store is not open.
func (a *admission) closedGate(site sites.ServedSite) (store.Restricted, error) {
	return a.gateOf(site, gate.Options{
		View: &privacy.View{
			Rules:  site.Privacy,
			Rights: func(string) (privacy.Rights, error) { return privacy.Rights{}, errUnadmitted },
			Reads:  func(string) (bool, error) { return false, errUnadmitted },
		},
		Unprivileged: func(string) error { return errUnadmitted },
	})
}

// gateOf wraps the store of a Site in a gate and an observer for the audit log, which records what
// the gate lets through. It returns nil while the store is not open.
func (a *admission) gateOf(site sites.ServedSite, options gate.Options) (store.Restricted, error) {
	if site.Store == nil {
		return nil, nil
	}
	options.Labels, options.Bases, options.Protects = fhir.LabelsOf, a.fhirURLs(site), isFHIR
	options.Events = a.eventsOf(site).Of // events.go
	options.Hid = func(ctx context.Context, rule string) { audit.From(ctx).Deny(rule) }
	opened, err := gate.New(site.Store, options)
	if err != nil {
		return nil, err
	}
	return audit.Observe(opened), nil
}

func isFHIR(recordType string) bool {
	_, known := r4.TypeOf(recordType)
	return known
}

// viewer determines and caches a caller's rights during one request. It is safe for concurrent use.
type viewer struct {
	*admission
	ctx    context.Context
	site   sites.ServedSite
	caller access.Caller
	reason string

	mu           sync.Mutex
	rightsByType map[string]privacy.Rights
}

// rightsTo returns the caller's rights to a type's records that privacy rules restrict. If the request
// has a break-glass reason, its first use for the type is recorded as a Kubernetes Event. Errors:
// *access.ForbiddenError if the caller may not break the glass, access.ErrUnavailable.
func (v *viewer) rightsTo(recordType string) (privacy.Rights, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.rightsByType[recordType]; ok {
		return known, nil
	}
	var s privacy.Rights
	if v.reason != "" {
		if err := v.authorize(verbBreakGlass, recordType); err != nil {
			return s, err
		}
		s.BreaksGlass = true
		v.brokeGlass(recordType)
	}
	var err error
	if s.Privileged, err = v.may(verbPrivileged, recordType); err != nil {
		return s, err
	}
	v.rightsByType[recordType] = s
	return s, nil
}

// reads reports whether the caller may get or list records of a type, all or some. Errors:
// access.ErrUnavailable.
func (v *viewer) reads(recordType string) (bool, error) {
	may, err := v.may("get", recordType)
	if err == nil && !may {
		may, err = v.may("list", recordType)
	}
	return may, err
}

func (v *viewer) action(verb, recordType string) access.Action {
	kind, _ := r4.TypeOf(recordType)
	return access.Action{Verb: verb, Group: r4.Group, Resource: kind.Resource}
}

// unprivileged returns the error of a write that needs the verb "privileged".
func (v *viewer) unprivileged(recordType string) error {
	return &access.ForbiddenError{Caller: v.caller.Name, Action: v.action(verbPrivileged, recordType)}
}

func (v *viewer) authorize(verb, recordType string) error {
	return v.rights.Authorize(v.ctx, v.caller, v.site.Access, v.action(verb, recordType))
}

// may reports whether the caller has the right to a verb on records of a type. A right that scopes
// restrict to some of the records (restrict) counts too. Errors: access.ErrUnavailable.
func (v *viewer) may(verb, recordType string) (bool, error) {
	err := v.authorize(verb, recordType)
	var forbidden *access.ForbiddenError
	if errors.As(err, &forbidden) || errors.Is(err, access.ErrSiteHidden) {
		return false, nil
	}
	return err == nil, err
}

// brokeGlass records a Kubernetes Event, which says that the caller bypassed privacy rules.
func (v *viewer) brokeGlass(recordType string) {
	v.events.BrokenGlass(v.site.Access, v.caller, v.action(verbBreakGlass, recordType), v.reason)
}
