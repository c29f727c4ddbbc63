package indexrow

// Earlier is the tables of earlier releases that a database has. While it has them, servers of those
// releases may use it.
type Earlier struct {
	// WideTexts reports whether there is the table ix_str, in which releases before server level 2
	// search texts.
	WideTexts bool
	// AllTokens reports whether tokens are in the table ix_tok, in which releases before server level 3
	// search for all of them. Otherwise they are in ix_code, without common codes, and without the tokens
	// of a union that a part of it has.
	AllTokens bool
}

// Tokens returns the name of the table of tokens.
func (e Earlier) Tokens() string {
	if e.AllTokens {
		return "ix_tok"
	}
	return "ix_code"
}

// or returns the tables that a database of e or of other has.
func (e Earlier) or(other Earlier) Earlier {
	return Earlier{e.WideTexts || other.WideTexts, e.AllTokens || other.AllTokens}
}

// Tables returns the names of the tables of index rows.
func (e Earlier) Tables() []string {
	tables := []string{e.Tokens(), "ix_ref", narrowTexts, "ix_date", "ix_pos"}
	if e.WideTexts {
		tables = append(tables, wideTexts)
	}
	return tables
}

// RemoveAll returns the statements that delete all index rows of some records. They are for rows
// that a release with another extraction wrote. They are slow: they scan all of the site's rows of
// tokens and in ix_text, which have no index by record. hasTexts reports whether one of the records may
// have rows in ix_text.
func (e Earlier) RemoveAll(hasTexts bool) []string {
	var statements []string
	for _, table := range e.Tables() {
		if table != narrowTexts || hasTexts {
			statements = append(statements, "DELETE FROM "+table+" WHERE site = $1 AND rid = ANY($2::int8[])")
		}
	}
	return statements
}

// wideTexts is the table in which releases before server level 2 search texts. narrowTexts is the
// table in which this release searches them.
const (
	wideTexts   = "ix_str"
	narrowTexts = "ix_text"
)
