package postgres

import (
	"fmt"
	"math"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

// statement collects the arguments of a statement while its text is written. The first is
// always the site.
type statement struct{ args []any }

func (s *Site) statement() *statement { return &statement{args: []any{s.site}} }

// arg takes a value in and returns its name in the text.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// fits reports whether a statement can have so many arguments: the protocol counts them in
// 16 bits.
func (s *statement) fits() error {
	if len(s.args) > math.MaxUint16 {
		return fmt.Errorf("%w: it comes to %d comparisons", store.ErrQueryTimeout, len(s.args))
	}
	return nil
}
