// Package gate restricts the store of a Site to the records that one caller may read and write. The
// APIs access records only through a gate.
package gate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// ErrNoAccess is returned if the caller's access is not specified. This is so for a gate without a
// view, and for a query without the types that the caller may list. The program then has a bug:
// unspecified access must not mean access to all records.
var ErrNoAccess = errors.New("the caller's access is not specified")

// Options configure a Store. View, Labels, Protects and Unprivileged are required.
type Options struct {
	// View determines which records privacy rules hide from the caller.
	View *privacy.View
	// Labels returns the labels in the body of a record, which privacy rules match.
	Labels func(recordType string, body store.Body) store.Labels
	// Bases are the base URLs of the Site. A link that starts with one of these URLs refers to a
	// record of the Site.
	Bases []string
	// Protects reports whether privacy rules and restrictions apply to records of a type.
	Protects func(recordType string) bool
	// Unprivileged returns the error for an operation that needs the verb "privileged" on a type.
	Unprivileged func(recordType string) error
	// Restrict, if set, returns the records of a type to which an RBAC verb of the caller is
	// restricted. It returns nil if the caller may use the verb on all records of the type. If
	// Restrict is nil, no verb is restricted.
	Restrict func(verb, recordType string) (*Restriction, error)
	// Hid, if set, is called with what hides a record that the caller reads, writes or refers to
	// (View.HiddenBy).
	Hid func(ctx context.Context, rule string)
	// Events, if set, returns the value of Op.Events for operations in which it is nil. Events
	// returns nil if the operation causes no events. Errors: those of the store.
	Events func(op store.Op) (func(store.Change) []store.Event, error)
}

// Restriction is a subset of the records of a type.
type Restriction struct {
	// Condition selects the subset in searches.
	Condition store.Condition
	// Holds reports whether one record is in the subset.
	Holds func(key store.Key, body store.Body) bool
	// Refusal is the error for a write outside the subset.
	Refusal error
}

// Store is a store.Store for one caller. Reads, searches and histories treat a record that the view
// hides as absent. Options.Restrict further limits the rights of the caller. The following results
// reveal that a hidden record exists: Stats, which counts all records; Hidden; the
// *store.IDTakenError of a write that creates a record with the same id; and a *store.ClaimError
// without a holder. A Store is safe for concurrent use.
type Store struct {
	behind  store.Store
	options Options

	mu         sync.Mutex
	conditions map[string]store.Condition // results of method condition, by resource type
}

var _ store.Restricted = (*Store)(nil)

// New returns a Store that gives one caller access to the records of the store behind. The Store
// must be used for one request only, because it caches the caller's access. Errors: ErrNoAccess if a
// required option is missing.
func New(behind store.Store, options Options) (*Store, error) {
	if behind == nil || options.View == nil || options.View.Rules == nil || options.View.Rights == nil || options.View.Reads == nil ||
		options.Labels == nil || options.Protects == nil || options.Unprivileged == nil {
		return nil, ErrNoAccess
	}
	return &Store{behind: behind, options: options, conditions: map[string]store.Condition{}}, nil
}

// Atomic implements store.Store.
func (s *Store) Atomic() bool { return s.behind.Atomic() }

// Stats implements store.Store.
func (s *Store) Stats() store.Stats { return s.behind.Stats() }

// Watermark implements store.Store.
func (s *Store) Watermark(ctx context.Context) (time.Time, error) { return s.behind.Watermark(ctx) }

// condition returns the condition under which privacy rules show records of a type to the caller.
func (s *Store) condition(recordType string) (store.Condition, error) {
	if !s.options.Protects(recordType) {
		return store.All{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if condition, known := s.conditions[recordType]; known {
		return condition, nil
	}
	condition, err := s.options.View.Condition(recordType)
	if err == nil {
		s.conditions[recordType] = condition
	}
	return condition, err
}

// Digest returns a text that identifies which records of some types privacy rules show to the caller.
// It does not depend on Options.Restrict. Page tokens are bound to the digest, because a position in
// the results of another caller could reveal records that are hidden from this caller. Errors: those
// of Options.View.
func (s *Store) Digest(recordTypes []string) (string, error) {
	var digest []byte
	for _, recordType := range recordTypes {
		condition, err := s.condition(recordType)
		if err != nil {
			return "", err
		}
		if store.IsEverything(condition) {
			continue
		}
		digest, err = s.options.View.AppendText(append(append(digest, recordType...), ' '), recordType)
		if err != nil {
			return "", err
		}
		digest = append(digest, '\n')
	}
	return string(digest), nil
}

// Search implements store.Store. If the query has no Bases, Search sets them, because the visibility of
// records with absolute links depends on them. Errors: those of the store, those of Options.View and
// Options.Restrict, ErrNoAccess.
func (s *Store) Search(ctx context.Context, query store.Query) (store.Page, error) {
	if query.Access == nil {
		return store.Page{}, ErrNoAccess
	}
	restricted := make(store.Access, len(query.Access))
	for recordType, right := range query.Access {
		condition, err := s.condition(recordType)
		if err != nil {
			return store.Page{}, err
		}
		restriction, err := s.restriction("list", recordType)
		if err != nil {
			return store.Page{}, err
		}
		parts := store.All{}
		for _, part := range []store.Condition{right, condition, restriction.Condition} {
			if !store.IsEverything(part) {
				parts = append(parts, part)
			}
		}
		restricted[recordType] = parts
		if len(parts) == 1 {
			restricted[recordType] = parts[0]
		}
	}
	query.Access = restricted
	if query.Bases == nil {
		query.Bases = s.options.Bases
	}
	return s.behind.Search(ctx, query)
}

// unrestricted contains all records of a type.
var unrestricted = &Restriction{Condition: store.All{}, Holds: func(store.Key, store.Body) bool { return true }}

// restriction returns the records of a type to which a verb is restricted. Without an error it is
// not nil.
func (s *Store) restriction(verb, recordType string) (*Restriction, error) {
	if s.options.Restrict == nil || !s.options.Protects(recordType) {
		return unrestricted, nil
	}
	restriction, err := s.options.Restrict(verb, recordType)
	if restriction == nil {
		restriction = unrestricted
	}
	return restriction, err
}

// History implements store.Store. A query for several records must name their types. History refuses
// callers whose right to list is restricted to some records, because no index shows which past
// versions are in the restriction. Errors: those of the store, those of Options.View and
// Options.Restrict, ErrNoAccess, Restriction.Refusal.
func (s *Store) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	types := query.Types
	if query.Key.Type != "" {
		types = []string{query.Key.Type}
	}
	if types == nil {
		return store.Page{}, ErrNoAccess
	}
	query.Access, query.Bases = store.Access{}, s.options.Bases
	restricted := false
	for _, recordType := range types {
		condition, err := s.condition(recordType)
		if err != nil {
			return store.Page{}, err
		}
		restriction, err := s.restriction("list", recordType)
		if err == nil && restriction != unrestricted {
			err = restriction.Refusal
		}
		if err != nil {
			return store.Page{}, err
		}
		query.Access[recordType] = condition
		restricted = restricted || !store.IsEverything(condition)
	}
	if !restricted {
		query.Access = nil
	}
	return s.behind.History(ctx, query)
}
