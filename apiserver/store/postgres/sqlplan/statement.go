package sqlplan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Statement collects the arguments of a statement while its SQL is written. $1 is always the site.
type Statement struct{ Args []any }

// Statement returns a Statement with the site as its only argument.
func (x *Index) Statement() *Statement { return &Statement{Args: []any{x.Number}} }

// Arg adds an argument and returns its placeholder.
func (s *Statement) Arg(value any) string {
	s.Args = append(s.Args, value)
	return "$" + strconv.Itoa(len(s.Args))
}

// fits returns an error if there are more arguments than Postgres's protocol allows: it counts them
// in 16 bits. Errors: store.ErrQueryTimeout.
func (s *Statement) fits() error {
	if len(s.Args) > math.MaxUint16 {
		return fmt.Errorf("%w: the statement has %d values; the maximum is %d", store.ErrQueryTimeout, len(s.Args), math.MaxUint16)
	}
	return nil
}

// CeilMillis returns a time in milliseconds since 1970, rounded up.
func CeilMillis(t time.Time) int64 {
	millis := t.UnixMilli()
	if t.After(time.UnixMilli(millis)) {
		millis++
	}
	return millis
}
