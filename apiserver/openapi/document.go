// Package openapi describes the FHIR and AHDS APIs of a site as an OpenAPI 3.1 document. It makes
// the document from the tables by which the APIs work: their routes, the elements and search
// parameters of the resource types, and the fields and filters of the AHDS API. It depends on the
// facades, but on no storage engine and no Kubernetes client.
package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// Document is the OpenAPI document of one site.
type Document struct {
	JSON []byte
	// Hash is a hash of JSON. It differs between documents with different JSON.
	Hash string
}

// New returns the OpenAPI document of a site. base is the URL of the site, or only the path of that
// URL, without a trailing slash. With a path, such as /site/1042, clients use the host that served
// the document.
func New(base string) (Document, error) {
	rest, err := common()
	if err != nil {
		return Document{}, err
	}
	servers, err := json.Marshal([]server{{URL: base, Description: "The site"}})
	if err != nil {
		return Document{}, fmt.Errorf("describe the site: %w", err)
	}
	// The document is large and differs between sites in this member only.
	text := append([]byte(`{"openapi":"3.1.0","servers":`), servers...)
	text = append(append(text, ','), rest[1:]...)
	sum := sha256.Sum256(text)
	return Document{JSON: text, Hash: base64.RawURLEncoding.EncodeToString(sum[:12])}, nil
}

// common returns the members that the documents of all sites share, as a JSON object.
var common = sync.OnceValues(func() ([]byte, error) {
	text, err := json.Marshal(describe())
	if err != nil {
		return nil, fmt.Errorf("describe the APIs: %w", err)
	}
	return text, nil
})

// describe returns the document without its servers.
func describe() description {
	d := description{
		Info: info{
			Title: "Paddock", Version: "1.0", Summary: "Administration records and scheduling of a veterinary practice",
			Description: "The FHIR R4 API of the administrative records of a site, below /fhir, and the animal health data store (AHDS) API of its slots, event groups, webhooks and events, below /ahds/v1. " +
				"HEAD works wherever GET does, except at $export, where GET starts a job. The FHIR API ignores a trailing slash. Every resource type of FHIR has two equivalent spellings in paths.",
			License: license{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Security: []security{{bearerKubernetes: {}}, {bearerIssuer: {}}},
		Paths:    map[string]map[string]operation{},
		Components: components{
			Schemas: map[string]schema.JSON{}, Parameters: map[string]parameter{}, Responses: map[string]response{},
			Headers: headers(), SecuritySchemes: securitySchemes,
		},
	}
	d.addPortal()
	d.addFHIR()
	d.addAHDS()
	return d
}

type description struct {
	Info       info                            `json:"info"`
	Security   []security                      `json:"security"`
	Tags       []tag                           `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components components                      `json:"components"`
}

type server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

type info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Summary     string  `json:"summary"`
	Description string  `json:"description"`
	License     license `json:"license"`
}

type license struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type security map[string][]string

type components struct {
	Schemas         map[string]schema.JSON `json:"schemas"`
	Parameters      map[string]parameter   `json:"parameters"`
	Responses       map[string]response    `json:"responses"`
	Headers         map[string]header      `json:"headers"`
	SecuritySchemes map[string]scheme      `json:"securitySchemes"`
}

type operation struct {
	Tags        []string            `json:"tags"`
	Summary     string              `json:"summary"`
	Description string              `json:"description,omitempty"`
	OperationID string              `json:"operationId"`
	Parameters  []parameter         `json:"parameters,omitempty"`
	RequestBody *requestBody        `json:"requestBody,omitempty"`
	Responses   map[string]response `json:"responses"`
	// Security is set for operations that need no token. It is then an empty list.
	Security *[]security `json:"security,omitempty"`
}

// parameter is a parameter, or with Ref a reference to one in the components.
type parameter struct {
	Ref         string      `json:"$ref,omitempty"`
	Name        string      `json:"name,omitempty"`
	In          string      `json:"in,omitempty"`
	Description string      `json:"description,omitempty"`
	Required    bool        `json:"required,omitempty"`
	Style       string      `json:"style,omitempty"`
	Explode     bool        `json:"explode,omitempty"`
	Schema      schema.JSON `json:"schema,omitempty"`
}

type requestBody struct {
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Content     map[string]content `json:"content"`
}

type content struct {
	Schema   schema.JSON        `json:"schema"`
	Examples map[string]example `json:"examples,omitempty"`
}

type example struct {
	Summary string          `json:"summary,omitempty"`
	Value   json.RawMessage `json:"value"`
}

// response is a response, or with Ref a reference to one in the components.
type response struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Headers     map[string]header  `json:"headers,omitempty"`
	Content     map[string]content `json:"content,omitempty"`
}

// header is a header, or with Ref a reference to one in the components.
type header struct {
	Ref         string      `json:"$ref,omitempty"`
	Description string      `json:"description,omitempty"`
	Schema      schema.JSON `json:"schema,omitempty"`
}

type scheme struct {
	Type         string `json:"type"`
	Scheme       string `json:"scheme"`
	BearerFormat string `json:"bearerFormat"`
	Description  string `json:"description"`
}

// The names of the two kinds of bearer tokens. Contract 5.
const (
	bearerKubernetes = "kubernetes"
	bearerIssuer     = "issuer"
)

var securitySchemes = map[string]scheme{
	bearerKubernetes: {
		Type: "http", Scheme: "bearer", BearerFormat: "JWT",
		Description: "A token of a Kubernetes ServiceAccount for the audience paddock.health/{namespace}/{name of the Site}, from kubectl create token.",
	},
	bearerIssuer: {
		Type: "http", Scheme: "bearer", BearerFormat: "JWT",
		Description: "A token of an OpenID Connect issuer that the Site trusts.",
	},
}

// refTo returns a reference to a schema of the components.
func refTo(name string) schema.JSON { return schema.JSON{"$ref": "#/components/schemas/" + name} }

// headerRefs returns references to headers of the components.
func headerRefs(names ...string) map[string]header {
	refs := map[string]header{}
	for _, name := range names {
		refs[name] = header{Ref: "#/components/headers/" + name}
	}
	return refs
}

func headers() map[string]header {
	text := schema.JSON{"type": "string"}
	return map[string]header{
		"ETag":             {Description: "The ETag of the version in the response, to be sent in If-Match or If-None-Match.", Schema: text},
		"Last-Modified":    {Description: "The time at which the version in the response was written.", Schema: text},
		"Location":         {Description: "The URL of the record that was written.", Schema: text},
		"Content-Location": {Description: "The URL from which to read the status of the export.", Schema: text},
		"Retry-After":      {Description: "The number of seconds to wait before the request is repeated.", Schema: text},
		"WWW-Authenticate": {Description: "The authentication scheme, and the reason for which the token was refused (RFC 6750).", Schema: text},
		"Allow":            {Description: "The methods that the path supports.", Schema: text},
	}
}
