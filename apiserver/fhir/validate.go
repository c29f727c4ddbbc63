package fhir

import (
	"errors"
	"net/http"
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// validation is the request of a $validate. R4 resource-operation-validate.html.
type validation struct {
	// resource is nil if the request has none.
	resource      []byte
	mode, profile string
	dialect       *dialect
}

// The modes of a validation. Without a mode, only the content is checked.
const (
	modeCreate = "create"
	modeUpdate = "update"
	modeDelete = "delete"
)

// validate serves POST …/{type}/$validate and …/{type}/{id}/$validate. The status is 200 whether or
// not the resource is valid.
func (h *handler) validate(w http.ResponseWriter, r *request) error {
	v, err := r.readValidation(w)
	if err != nil {
		return err
	}
	issues, err := r.validationIssues(v)
	if err != nil {
		return err
	}
	if len(issues) == 0 {
		issues = []r4.Issue{information("valid", "the validation found no issues")}
	}
	return r.respondOutcome(w, http.StatusOK, issues...)
}

// validationIssues validates the resource. It reads no record, because the right to update must not
// reveal which ids exist.
func (r *request) validationIssues(v validation) ([]r4.Issue, error) {
	if v.mode == modeDelete {
		return nil, r.authorize("delete")
	}
	resource, err := readWhole(v.resource, r4.Options{
		Type: r.kind.Name, Optional: v.dialect.optional, Warnings: true, IgnoreID: v.mode == modeCreate, Bases: r.bases(),
	})
	var issues r4.Errors
	switch {
	case errors.As(err, &issues):
		return issues, nil
	case err != nil:
		return nil, err
	case v.mode != modeUpdate:
		return resource.Warnings, nil
	}
	sent := body{resource: resource, dialect: v.dialect}
	if r.id == "" { // the id in the resource is the one to update
		if sent.resource.ID == "" {
			return problemOf(r.idError("the resource has no id; for the mode update, send one")).issues, nil
		}
		r.id = sent.resource.ID
	}
	if err := r.checkID(sent); err != nil {
		return problemOf(err).issues, nil
	}
	return resource.Warnings, nil
}

// readValidation reads the body, which is a resource or Parameters with one, and the query string.
func (r *request) readValidation(w http.ResponseWriter) (validation, error) {
	if err := rejectUnknownParameters(r.query, "mode", "profile"); err != nil {
		return validation{}, err
	}
	v := validation{mode: r.query.Get("mode"), profile: r.query.Get("profile")}
	raw, err := r.readBody(w)
	if err != nil {
		return validation{}, err
	}
	if len(raw) > 0 {
		if v.dialect, err = bodyDialect(r.Header); err != nil {
			return validation{}, err
		}
		v.resource = raw
		if isParameters(raw) {
			v.resource = nil
			parameters, err := readParameters(raw)
			if err != nil {
				return validation{}, err
			}
			for _, p := range parameters {
				if err := v.readParameter(p); err != nil {
					return validation{}, err
				}
			}
		}
	}
	return v, v.check(r)
}

func (v *validation) readParameter(p sentParameter) error {
	known := map[string]struct {
		from []string
		into *string
	}{
		"mode":    {[]string{"valueCode", "valueString"}, &v.mode},
		"profile": {[]string{"valueUri", "valueCanonical", "valueUrl", "valueString"}, &v.profile},
	}
	if p.name == "resource" {
		if v.resource != nil || p.members["resource"] == nil {
			return invalidParameters("the parameter resource must be given once, with the resource to validate as its member resource")
		}
		v.resource = p.members["resource"]
		return nil
	}
	into, ok := known[p.name].into, false
	if into == nil {
		return invalidParameters("the parameter " + r4.Quote(p.name) + " is not supported for $validate; give mode, profile or resource")
	}
	at := slices.IndexFunc(known[p.name].from, func(member string) bool { return p.members[member] != nil })
	if at >= 0 && *into == "" {
		*into, ok = unquote(p.members[known[p.name].from[at]])
	}
	if !ok {
		return invalidParameters("the parameter " + p.name + " must be given once, with a value as " + known[p.name].from[0])
	}
	return nil
}

// check returns an error if mode or profile is not supported, or if an id or a resource is missing.
func (v *validation) check(r *request) error {
	const definitions = "http://hl7.org/fhir/StructureDefinition/"
	supportedProfiles := []string{"", definitions + r.kind.Name, definitions + "DomainResource", definitions + "Resource"}
	switch {
	case !slices.Contains([]string{"", modeCreate, modeUpdate, modeDelete}, v.mode):
		return invalidParameters("the mode " + r4.Quote(v.mode) + " is not supported; give create, update or delete, or omit the mode")
	case !slices.Contains(supportedProfiles, v.profile):
		return invalidParameters("the profile " + r4.Quote(v.profile) + " is not supported; omit it or give " + supportedProfiles[1])
	case v.mode == modeDelete && r.id == "":
		return invalidParameters("the mode delete needs the id of a record in the path: POST {type}/{id}/$validate")
	case v.mode != modeDelete && v.resource == nil:
		return invalidParameters("there is no resource to validate; send one as the body or in a Parameters resource")
	}
	return nil
}
