package fhir

import "github.com/go-chi/chi/v5"

// RouteTable returns the facade's table of paths, for tests that must cover all of them.
func RouteTable() chi.Routes { return (&handler{}).routes() }
