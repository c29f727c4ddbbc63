package store

// Extractor finds what engines index in the bodies of records. Its methods are pure functions, so
// that engines may call them whenever they index a record.
type Extractor interface {
	// Version returns the version of the results of the other methods. A release whose results
	// differ in any record has a higher version than all earlier releases. API servers reindex a
	// site whose stored index was made with a lower version.
	Version() int64
	// Extract returns the searchable values of a record, and its Mentions.
	Extract(recordType string, body []byte) []IndexValue
	// References returns those results of Extract whose Value is a Reference.
	References(recordType string, body []byte) []IndexValue
	// Labels returns the labels of a version of a record from its type and searchable values.
	Labels(recordType string, values []IndexValue) Labels
	// IsFacet reports whether a token parameter is a facet: it has few distinct codes, as gender has. A
	// facet divides records into groups and filters the candidates of other conditions.
	IsFacet(param string) bool
	// CommonCodes returns those codes of facets that many records of a type have. All values with such a
	// code have its system. An engine may find them by a scan, without an index entry for each record. If
	// a release returns others, or in another order, it must reindex all records.
	CommonCodes(recordType string) []CommonCode
	// Ordinal returns the number of a parameter among those of a type, from 0, or -1 if it has none. If a
	// release gives a parameter another number, it must reindex all records.
	Ordinal(recordType, param string) int
	// Parts returns the parameters of a type of which each text or token is also one of param, as family
	// and given are parts of name, and phone is a part of telecom. An engine may store such a value once. A
	// parameter is a part of at most one parameter, and a part has no parts. The system of a token decides
	// whether it belongs to a part.
	Parts(recordType, param string) []string
	// Fold returns Text.Folded of a text whose Original is given.
	Fold(original string) string
}

// CommonCode is a code that many records of a type have, as value of the parameter Param.
type CommonCode struct {
	Param string
	Token Token
}

// NoExtractor finds nothing in any record.
var NoExtractor Extractor = noExtractor{}

type noExtractor struct{}

func (noExtractor) Version() int64                            { return 0 }
func (noExtractor) Extract(string, []byte) []IndexValue       { return nil }
func (noExtractor) References(string, []byte) []IndexValue    { return nil }
func (noExtractor) Labels(string, []IndexValue) (none Labels) { return none }
func (noExtractor) IsFacet(string) bool                       { return false }
func (noExtractor) CommonCodes(string) []CommonCode           { return nil }
func (noExtractor) Ordinal(string, string) int                { return -1 }
func (noExtractor) Parts(string, string) []string             { return nil }
func (noExtractor) Fold(original string) string               { return original }
