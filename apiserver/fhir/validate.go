package fhir

import (
	"errors"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// validation is what a $validate asks for.
// R4 resource-operation-validate.html.
type validation struct {
	// resource is nil when there is none.
	resource      []byte
	mode, profile string
	dialect       *dialect
}

// The modes of a validation; without one, the content alone is judged.
const (
	modeCreate = "create"
	modeUpdate = "update"
	modeDelete = "delete"
)

// validate serves POST …/{type}/$validate and …/{type}/{id}/$validate. That the
// answer is 200 says that there was a judgement, not which.
func (h *handler) validate(w http.ResponseWriter, r *request) error {
	asked, err := r.readValidation(w)
	if err != nil {
		return err
	}
	issues, err := r.judge(asked)
	if err != nil {
		return err
	}
	if len(issues) == 0 {
		issues = []r4.Issue{information("valid", "nothing is wrong with it")}
	}
	return r.respondOutcome(w, http.StatusOK, issues...)
}

// judge lists what is wrong with what is to be validated.
func (r *request) judge(asked validation) ([]r4.Issue, error) {
	if asked.mode == modeDelete {
		return nil, r.authorize("delete")
	}
	resource, err := r4.Read(asked.resource, r4.Options{
		Type: r.kind.Name, Optional: asked.dialect.optional, Warnings: true, IgnoreID: asked.mode == modeCreate,
	})
	var issues r4.Errors
	switch {
	case errors.As(err, &issues):
		return issues, nil
	case err != nil:
		return nil, err
	case asked.mode != modeUpdate:
		return resource.Warnings, nil
	}
	sent := body{resource: resource, dialect: asked.dialect}
	if r.id == "" { // the resource itself says which one it is to update
		if sent.resource.ID == "" {
			return problemOf(r.wrongID("the resource has no id; for an update it must have one")).issues, nil
		}
		r.id = sent.resource.ID
	}
	if err := r.checkID(sent); err != nil {
		return problemOf(err).issues, nil
	}
	if !r.site.UpdateCreate {
		_, err = r.site.Store.Get(r.Context(), r.key())
	}
	if isAbsent(err) {
		return problemOf(err).issues, nil
	}
	return resource.Warnings, err
}

// readValidation reads a body that is a resource, or Parameters with one in it,
// and the parameters in the query string.
func (r *request) readValidation(w http.ResponseWriter) (validation, error) {
	if err := refuseOthers(r.query, "mode", "profile"); err != nil {
		return validation{}, err
	}
	asked := validation{mode: r.query.Get("mode"), profile: r.query.Get("profile")}
	raw, err := r.readBody(w)
	if err != nil {
		return validation{}, err
	}
	if len(raw) > 0 {
		if asked.dialect, err = bodyDialect(r.Header.Get("Content-Type")); err != nil {
			return validation{}, err
		}
		asked.resource = raw
		if isParameters(raw) {
			asked.resource = nil
			if err := asked.takeParameters(raw); err != nil {
				return validation{}, err
			}
		}
	}
	return asked, asked.check(r)
}

// isParameters reports whether a text is a Parameters resource. A text that cannot
// be read is not: it is judged as a resource.
func isParameters(text jsontext.Value) bool {
	if text.Kind() != jsontext.KindBeginObject || !text.IsValid() {
		return false
	}
	found := false
	err := eachMember(text, func(name string, value jsontext.Value) error {
		kind, _ := stringOf(value)
		found = found || name == "resourceType" && kind == "Parameters"
		return nil
	})
	return err == nil && found
}

func (v *validation) takeParameters(text []byte) error {
	return eachMember(text, func(name string, value jsontext.Value) error {
		switch {
		case name != "parameter":
			return nil
		case value.Kind() != jsontext.KindBeginArray:
			return invalidParameters("Parameters.parameter must be an array")
		}
		return eachElement(value, v.takeParameter)
	})
}

// takeParameter takes one parameter of a Parameters resource.
func (v *validation) takeParameter(parameter jsontext.Value) error {
	if parameter.Kind() != jsontext.KindBeginObject {
		return invalidParameters("a parameter must be an object")
	}
	members := map[string]jsontext.Value{}
	if err := eachMember(parameter, func(name string, value jsontext.Value) error {
		members[name] = value
		return nil
	}); err != nil {
		return err
	}
	name, _ := stringOf(members["name"])
	known := map[string]struct {
		from []string
		into *string
	}{
		"mode":    {[]string{"valueCode", "valueString"}, &v.mode},
		"profile": {[]string{"valueUri", "valueCanonical", "valueUrl", "valueString"}, &v.profile},
	}
	if name == "resource" {
		if v.resource != nil || members["resource"] == nil {
			return invalidParameters("the parameter resource must have one resource")
		}
		v.resource = members["resource"]
		return nil
	}
	into, ok := known[name].into, false
	if into == nil {
		return invalidParameters("the parameter " + r4.Quote(name) + " is not known for $validate; known are mode, profile, resource")
	}
	at := slices.IndexFunc(known[name].from, func(member string) bool { return members[member] != nil })
	if at >= 0 && *into == "" {
		*into, ok = stringOf(members[known[name].from[at]])
	}
	if !ok {
		return invalidParameters("the parameter " + name + " must have one value, as " + known[name].from[0])
	}
	return nil
}

func invalidParameters(diagnostics string) error {
	return &invalidError{code: codeInvalidParameters, diagnostics: diagnostics}
}

// check makes sure that the validation is one that the server can do.
func (v *validation) check(r *request) error {
	const definitions = "http://hl7.org/fhir/StructureDefinition/"
	ours := []string{"", definitions + r.kind.Name, definitions + "DomainResource", definitions + "Resource"}
	switch {
	case !slices.Contains([]string{"", modeCreate, modeUpdate, modeDelete}, v.mode):
		return invalidParameters("the mode " + r4.Quote(v.mode) + " is not supported; give create, update or delete, or none")
	case !slices.Contains(ours, v.profile):
		return invalidParameters("the profile " + r4.Quote(v.profile) + " is not known; resources are judged by " + ours[1])
	case v.mode == modeDelete && r.id == "":
		return invalidParameters("the mode delete needs the id of a record in the path")
	case v.mode != modeDelete && v.resource == nil:
		return invalidParameters("there is no resource to validate; send one, by itself or in a Parameters resource")
	}
	return nil
}
