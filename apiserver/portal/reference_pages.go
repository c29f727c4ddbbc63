package portal

import (
	"net/http"
	"sync"

	"github.com/paddock-health/paddock/apiserver/openapi"
	"github.com/paddock-health/paddock/apiserver/portal/reference"
	"github.com/paddock-health/paddock/apiserver/web"
)

// readReference reads the OpenAPI document once. The document differs between sites only in the
// address of the site, which the pages of the reference do not take from it.
var readReference = sync.OnceValues(func() (*reference.Reference, error) {
	document, err := openapi.New("")
	if err != nil {
		return nil, err
	}
	return reference.New(document.JSON)
})

// referencePage is what a page of the API reference shows.
type referencePage struct {
	Site      Site
	Reference *reference.Reference
	// Of is the operation or the schema that the page shows. It is nil on the list of both.
	Of any
}

// reference serves /site/{siteId}/docs, whatever the client accepts.
func (h *handler) reference(w http.ResponseWriter, r *http.Request, site Site) error {
	all, err := readReference()
	if err != nil {
		return err
	}
	return respondPage(w, r, http.StatusOK, "docs.html", referencePage{Site: site, Reference: all})
}

// referenceOperation serves the page of an operation.
func (h *handler) referenceOperation(w http.ResponseWriter, r *http.Request, site Site) error {
	all, err := readReference()
	if err != nil {
		return err
	}
	of, found, err := all.Operation(web.PathParameter(r, "operation"))
	return respondReference(w, r, "operation.html", referencePage{site, all, of}, found, err)
}

// referenceSchema serves the page of a schema.
func (h *handler) referenceSchema(w http.ResponseWriter, r *http.Request, site Site) error {
	all, err := readReference()
	if err != nil {
		return err
	}
	of, found, err := all.Schema(web.PathParameter(r, "schema"))
	return respondReference(w, r, "schema.html", referencePage{site, all, of}, found, err)
}

// respondReference responds with a page of the API reference. It returns an error if the operation or
// schema of the page was not found, and passes on err.
func respondReference(w http.ResponseWriter, r *http.Request, name string, page referencePage, found bool, err error) error {
	switch {
	case err != nil:
		return err
	case !found:
		return &web.UnknownPathError{Paths: "/site/{siteId}/docs lists the operations and schemas"}
	default:
		return respondPage(w, r, http.StatusOK, name, page)
	}
}
