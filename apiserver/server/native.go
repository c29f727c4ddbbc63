package server

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/native"
	"github.com/paddock-health/paddock/apiserver/store"
)

// newNative returns the handler of the native format.
func (s *Server) newNative(rights access.Authorizer) http.Handler {
	return native.New(native.Config{
		Admit: func(r *http.Request, siteID string) (native.Site, access.Caller, error) {
			site, caller, err := s.admission.admitSite(r, siteID)
			if err != nil {
				return native.Site{}, caller, err
			}
			opened, _ := site.Store.(native.Store) // nil while the storage is not open
			return native.Site{Access: site.Access, Store: opened, Limiter: s.admission.limitsOf(site)}, caller, nil
		},
		Authorizer: rights,
		CheckBody:  checkBody,
		Audit:      s.audit,
		ErrorPages: s.errorPages(),
		Log:        s.config.Log,
	})
}

// checkBody returns what is wrong with the stored body of a record of any facade.
func checkBody(key store.Key, body store.Body) []native.Problem {
	if _, isFHIR := r4.TypeOf(key.Type); !isFHIR {
		if err := ahds.CheckStored(key.Type, body.JSON); err != nil {
			return []native.Problem{{Expression: "body", Code: "invalid_body", Message: err.Error()}}
		}
		return nil
	}
	var problems []native.Problem
	for _, issue := range fhir.CheckStored(key, body) {
		problems = append(problems, native.Problem{Expression: issue.Expression, Code: issue.Code, Message: issue.Diagnostics})
	}
	return problems
}
