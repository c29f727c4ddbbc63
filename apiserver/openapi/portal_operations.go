package openapi

import (
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/web"
)

const mediaHTML = "text/html"

// landing is the schema of the landing page of a site for programs.
var landing = object(schema.JSON{
	"site": text, "links": schema.JSON{"type": "object", "additionalProperties": text, "description": "Addresses by what is there: fhir, docs and others."},
})

var portalError = errorFormat{"Page", map[string]content{mediaProblem: {Schema: refTo("Problem")}, mediaHTML: {Schema: text}}}

// addPortal adds the landing page, this document, the API reference and the console.
func (d *description) addPortal() {
	const portal = "Pages"
	d.Tags = append(d.Tags, tag{portal, "Pages and documents about the site."})
	d.Components.Schemas["Landing"] = landing
	html := content{Schema: text}
	for _, page := range []struct {
		path, id, summary string
		// gives is the content of success, which the Accept header selects.
		gives map[string]content
	}{
		{"/", "landing", "Find what the site has", map[string]content{mediaJSON: {Schema: refTo("Landing")}, mediaHTML: html}},
		{"/openapi.json", "document", "Read this document", map[string]content{mediaJSON: {Schema: schema.JSON{"type": "object"}}}},
		{"/docs", "reference", "Open the API reference", map[string]content{mediaHTML: html}},
		{"/console", "console", "Open the console in a browser, which sends Accept: text/html", map[string]content{mediaHTML: html}},
	} {
		op := operation{
			Tags: []string{portal}, Summary: page.summary, OperationID: page.id, Description: rightOf(web.Route{Public: true}),
			Responses: map[string]response{"200": {Description: "Done", Content: page.gives}},
		}
		if page.path == "/openapi.json" {
			op.Responses["304"] = notModified
		}
		d.Components.addErrors(&op, web.Route{Public: true}, nil, portalError)
		d.add(page.path, "GET", op)
	}
}
