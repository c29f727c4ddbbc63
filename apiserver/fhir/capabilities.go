package fhir

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/web"
)

// capabilities is a CapabilityStatement. Its elements are written in the order of the fields. A
// test exercises everything that it claims. R4 capabilitystatement.html.
type capabilities struct {
	ResourceType   string         `json:"resourceType"`
	Status         string         `json:"status"`
	Date           string         `json:"date"`
	Kind           string         `json:"kind"`
	Software       software       `json:"software"`
	Implementation implementation `json:"implementation"`
	FHIRVersion    string         `json:"fhirVersion"`
	Format         []string       `json:"format"`
	PatchFormat    []string       `json:"patchFormat"`
	Rest           []rest         `json:"rest"`
}

type software struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type implementation struct {
	Extension   []codeExtension `json:"extension,omitempty"`
	Description string          `json:"description"`
	URL         string          `json:"url"`
}

type codeExtension struct {
	URL       string `json:"url"`
	ValueCode string `json:"valueCode"`
}

// TimeZone is the URL of the extension of CapabilityStatement.implementation that names the time
// zone of a site.
const TimeZone = "http://hl7.org/fhir/StructureDefinition/timezone"

type rest struct {
	Mode          string               `json:"mode"`
	Documentation string               `json:"documentation"`
	Security      security             `json:"security"`
	Resource      []resourceCapability `json:"resource"`
	Interaction   []coded              `json:"interaction"`
	SearchParam   []searchParameter    `json:"searchParam"`
	Operation     []operation          `json:"operation"`
	Compartment   []string             `json:"compartment"`
}

type coded struct {
	Code string `json:"code"`
}

type resourceCapability struct {
	Type              string            `json:"type"`
	Profile           string            `json:"profile"`
	Interaction       []coded           `json:"interaction"`
	Versioning        string            `json:"versioning"`
	ReadHistory       bool              `json:"readHistory"`
	UpdateCreate      bool              `json:"updateCreate"`
	ConditionalCreate bool              `json:"conditionalCreate"`
	ConditionalRead   string            `json:"conditionalRead"`
	ConditionalUpdate bool              `json:"conditionalUpdate"`
	ConditionalDelete string            `json:"conditionalDelete"`
	ReferencePolicy   []string          `json:"referencePolicy,omitempty"`
	SearchInclude     []string          `json:"searchInclude,omitempty"`
	SearchRevInclude  []string          `json:"searchRevInclude,omitempty"`
	SearchParam       []searchParameter `json:"searchParam"`
	Operation         []operation       `json:"operation,omitempty"`
}

type searchParameter struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition,omitempty"`
}

type operation struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

// bulkDataOperation is the start of the URLs of the operations of Bulk Data Access 2.0.
const bulkDataOperation = "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/"

const searchDocumentation = "Searches support chains, _has, _include, _revinclude, _include:iterate and _revinclude:iterate. They do not support _text, _content, _query, _filter or _list. " +
	"A search by patient, or in the compartment of a patient, finds the records that refer to that Patient. It does not follow Patient.link."

// metadata serves GET metadata, and OPTIONS at the base. R4 http.html#capabilities.
func (h *handler) metadata(w http.ResponseWriter, r *request) error {
	if err := checkMetadataQuery(r); err != nil {
		return err
	}
	body, err := json.Marshal(h.capabilities(r.site))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	tag := web.ETag{Weak: true, Opaque: hex.EncodeToString(sum[:8])}
	known, err := web.ParseETags(r.Header, "If-None-Match", readETagSyntax)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tag.String())
	if known.MatchWeak(tag) {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, body)
}

// checkMetadataQuery returns an error unless the server supports the query string. It accepts
// _summary and _elements, although the response is always the whole statement, which R4 allows
// (search.html#summary). Errors: search.Errors.
func checkMetadataQuery(r *request) error {
	if mode := r.query.Get("mode"); mode != "" && mode != "full" && mode != "normative" {
		return search.Errors{{Parameter: "mode", Problem: r4.Quote(mode) + " is not supported; give full or normative"}}
	}
	switch summary := r.query.Get("_summary"); summary {
	case "", "true", "text", "data", "false":
	default:
		return search.Errors{{Parameter: "_summary", Problem: r4.Quote(summary) + " is not supported; give true, text, data or false"}}
	}
	return rejectUnknownParameters(r.query, "mode", "_summary", "_elements")
}

func (h *handler) capabilities(site Endpoint) capabilities {
	server := rest{
		Mode:          "server",
		Documentation: searchDocumentation,
		Security:      securityOf(site), // smart.go
		Interaction:   []coded{{"batch"}, {"history-system"}, {"search-system"}},
	}
	if site.Store != nil && site.Store.Atomic() {
		server.Interaction = append(server.Interaction, coded{"transaction"})
	}
	server.SearchParam = searchParameters(search.CommonParameters())
	server.Operation = []operation{{"export", bulkDataOperation + "export"}}
	for _, c := range r4.Compartments {
		server.Compartment = append(server.Compartment, c.Definition)
	}
	for _, kind := range r4.Types {
		server.Resource = append(server.Resource, resourceCapabilities(kind, site))
	}
	server.Resource = append(server.Resource, auditCapabilities())
	return capabilities{
		ResourceType:   "CapabilityStatement",
		Status:         "active",
		Date:           h.started.UTC().Format("2006-01-02T15:04:05Z"),
		Kind:           "instance",
		Software:       software{Name: "Paddock", Version: h.Version},
		Implementation: implementationOf(site),
		FHIRVersion:    "4.0.1",
		Format:         []string{fhirDialect.mediaType, contractDialect.mediaType, "json"},
		PatchFormat:    []string{patchFormat},
		Rest:           []rest{server},
	}
}

func implementationOf(site Endpoint) implementation {
	described := implementation{Description: "Administrative records of the site " + site.ID, URL: site.BaseURL}
	if site.Zone != nil {
		described.Extension = []codeExtension{{URL: TimeZone, ValueCode: site.Zone.String()}}
	}
	return described
}

func resourceCapabilities(kind r4.Type, site Endpoint) resourceCapability {
	capability := resourceCapability{
		Type:    kind.Name,
		Profile: "http://hl7.org/fhir/StructureDefinition/" + kind.Name,
		Interaction: []coded{
			{"read"},
			{"vread"},
			{"update"},
			{"patch"},
			{"delete"},
			{"history-instance"},
			{"history-type"},
			{"create"},
			{"search-type"},
		},
		Versioning:        "versioned-update",
		ReadHistory:       true,
		UpdateCreate:      site.UpdateCreate,
		ConditionalCreate: true,
		ConditionalRead:   "full-support",
		ConditionalUpdate: true,
		ConditionalDelete: "single",
		Operation:         []operation{{"validate", "http://hl7.org/fhir/OperationDefinition/Resource-validate"}, purgeOf(kind)},
	}
	switch kind.Name {
	case patientType:
		capability.Operation = append(capability.Operation,
			operation{"everything", "http://hl7.org/fhir/OperationDefinition/Patient-everything"}, operation{"export", bulkDataOperation + "patient-export"})
	case "Group":
		capability.Operation = append(capability.Operation, operation{"export", bulkDataOperation + "group-export"})
	}
	if site.EnforceReferences {
		capability.ReferencePolicy = []string{"enforced"}
	}
	capability.SearchInclude, capability.SearchRevInclude = search.IncludesOf(kind.Name)
	capability.SearchParam = searchParameters(search.ParametersOf(kind.Name))
	return capability
}

func searchParameters(parameters []search.Parameter) []searchParameter {
	described := make([]searchParameter, len(parameters))
	for i, p := range parameters {
		described[i] = searchParameter(p)
	}
	return described
}
