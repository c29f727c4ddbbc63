package fhir

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// capabilities is a CapabilityStatement, in the order in which it is written. A
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
	Description string `json:"description"`
	URL         string `json:"url"`
}

type rest struct {
	Mode          string               `json:"mode"`
	Documentation string               `json:"documentation"`
	Security      security             `json:"security"`
	Resource      []resourceCapability `json:"resource"`
	Interaction   []coded              `json:"interaction"`
	SearchParam   []searchParameter    `json:"searchParam"`
	Compartment   []string             `json:"compartment"`
}

type security struct {
	CORS        bool   `json:"cors"`
	Description string `json:"description"`
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
	Operation         []operation       `json:"operation"`
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

const securityDescription = "Every request but this one carries Authorization: Bearer <token>. " +
	"What a caller may do is decided per type by the rights to get, list, create, update, patch and delete."

const searchDocumentation = "Searches take neither _text, _content, _query, _filter nor _list. Chains, _has, _include and _revinclude are taken, also with :iterate. " +
	"A search by patient, or in the compartment of a patient, finds what refers to that very record: it does not follow Patient.link."

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
	tag := hex.EncodeToString(sum[:8])
	known, err := parseKnown(r.Header)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `W/"`+tag+`"`)
	if known.any || slices.Contains(known.opaque, tag) {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, body)
}

// checkMetadataQuery takes the modes that are answered with a CapabilityStatement, and what
// asks for a part of it: the answer is all of it, as a server may (R4 search.html#summary).
func checkMetadataQuery(r *request) error {
	if mode := r.query.Get("mode"); mode != "" && mode != "full" && mode != "normative" {
		return search.Errors{{Parameter: "mode", Problem: r4.Quote(mode) + " is not supported; give full or normative"}}
	}
	switch summary := r.query.Get("_summary"); summary {
	case "", "true", "text", "data", "false":
	default:
		return search.Errors{{Parameter: "_summary", Problem: r4.Quote(summary) + " is not known here; give true, text, data or false"}}
	}
	return refuseOthers(r.query, "mode", "_summary", "_elements")
}

// capabilities says what a site can do.
func (h *handler) capabilities(site Site) capabilities {
	server := rest{
		Mode:          "server",
		Documentation: searchDocumentation,
		Security:      security{CORS: site.CORS, Description: securityDescription},
		Interaction:   []coded{{"batch"}, {"history-system"}, {"search-system"}},
	}
	if site.Store != nil && site.Store.Atomic() {
		server.Interaction = append(server.Interaction, coded{"transaction"})
	}
	server.SearchParam = describe(search.CommonParameters())
	for _, c := range r4.Compartments {
		server.Compartment = append(server.Compartment, c.Definition)
	}
	for _, kind := range r4.Types {
		server.Resource = append(server.Resource, capabilitiesOf(kind, site))
	}
	return capabilities{
		ResourceType:   "CapabilityStatement",
		Status:         "active",
		Date:           h.started.UTC().Format("2006-01-02T15:04:05Z"),
		Kind:           "instance",
		Software:       software{Name: "Paddock", Version: h.Version},
		Implementation: implementation{Description: "Administrative records of the site " + site.ID, URL: site.BaseURL},
		FHIRVersion:    "4.0.1",
		Format:         []string{fhirDialect.mediaType, contractDialect.mediaType, "json"},
		PatchFormat:    []string{patchFormat},
		Rest:           []rest{server},
	}
}

// capabilitiesOf says what can be done with records of a type.
func capabilitiesOf(kind r4.Type, site Site) resourceCapability {
	said := resourceCapability{
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
		Operation:         []operation{{"validate", "http://hl7.org/fhir/OperationDefinition/Resource-validate"}},
	}
	if site.EnforceReferences {
		said.ReferencePolicy = []string{"enforced"}
	}
	said.SearchInclude, said.SearchRevInclude = search.IncludesOf(kind.Name)
	said.SearchParam = describe(search.ParametersOf(kind.Name))
	return said
}

func describe(parameters []search.Parameter) []searchParameter {
	said := make([]searchParameter, len(parameters))
	for i, p := range parameters {
		said[i] = searchParameter(p)
	}
	return said
}
