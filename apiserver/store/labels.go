package store

import "slices"

// Labels are the properties of one version of a record on which access to it depends. Engines store
// them with every version, so that Access can restrict histories too.
type Labels struct {
	// Names are opaque labels. The facade makes them from security labels, tags and profiles.
	Names []string `json:"names,omitempty"`
	// Links are the references on which the visibility of the record depends.
	Links []Link `json:"links,omitempty"`
}

// Link is a reference of a record that the search parameter Param finds.
type Link struct {
	Param string    `json:"param"`
	To    Reference `json:"to"`
}

// Has reports whether Names contains a label.
func (l Labels) Has(name string) bool { return slices.Contains(l.Names, name) }
