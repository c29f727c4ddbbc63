package fhir

import "github.com/go-chi/chi/v5"

// Routes returns the facade's table of paths, for tests that must cover all of them.
func Routes() chi.Routes { return (&handler{}).routes() }
