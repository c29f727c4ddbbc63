package server

import (
	"errors"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// changeCursors seals the cursors of lists of changes in the same way as the page tokens of
// searches. It implements ahds.Cursors.
type changeCursors struct {
	tokens search.Tokens
	now    func() time.Time
}

// Seal implements ahds.Cursors.
func (c *changeCursors) Seal(of ahds.CursorScope, at []byte) string {
	return c.tokens.Seal(cursorBinding(of), search.Cursor{After: at}, c.now())
}

// Open implements ahds.Cursors.
func (c *changeCursors) Open(of ahds.CursorScope, token string) ([]byte, error) {
	cursor, err := c.tokens.Open(cursorBinding(of), token, c.now())
	switch {
	case errors.Is(err, search.ErrTokenExpired):
		return nil, errors.New("has expired; send the time of your last poll, less a minute")
	case err != nil:
		return nil, errors.New("was not made by this server for this site, list and caller; send meta.next of the last list unchanged, or the time of your last poll, less a minute")
	}
	return cursor.After, nil
}

func cursorBinding(of ahds.CursorScope) search.Binding {
	return search.Binding{Site: of.SiteID, Scope: "ahds " + of.Collection, Caller: of.Caller, View: of.View}
}
