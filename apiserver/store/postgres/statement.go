package postgres

import "strconv"

// statement collects the arguments of a statement while its text is written. The first is
// always the site.
type statement struct{ args []any }

func (s *Site) statement() *statement { return &statement{args: []any{s.site}} }

// arg takes a value in and returns its name in the text.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}
