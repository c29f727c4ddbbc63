package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxAttempts is how often Write tries one write. An attempt fails if the gate must first read the
// labels of a deleted record or of linked records, or if a record is hidden from the caller. The
// gate then reads these records, for all operations of the write that may need them, and tries
// again. An attempt also fails if one of these records has changed in the meantime. Attempts after
// which a claim was removed do not count. At the limit, Write returns store.ErrUnavailable.
const maxAttempts = 10

// errHidden refuses an operation on a record that is hidden from the caller.
var errHidden = errors.New("the record is hidden from the caller")

// errLinks is returned if the linked records must be read before the write can be approved.
// errTombstone is returned if the last version of a deleted record must be read first. Neither can
// be read while the store holds its locks, so the write is retried.
var (
	errLinks     = errors.New("the links of the record have not been followed")
	errTombstone = errors.New("the labels before the deletion have not been read")
)

// operation is a store.Op with what the gate knows about it.
type operation struct {
	store.Op
	condition store.Condition
	// guarded reports whether the operation needs approve.
	guarded bool
	// create and change are the restrictions of the rights that the operation needs.
	create, change *Restriction
	// judged is the version that judge has read, 0 for none. visible is the result of judge: whether
	// the caller may see and change the record. If the version is a deletion, before has the labels of the
	// version before it.
	judged  int64
	visible bool
	before  store.Labels
	// reason is the error of approve in the last attempt.
	reason error
}

// Write implements store.Store. An operation on a hidden record has the same result as if the
// record did not exist: a deletion changes nothing, and a precondition on a version fails. Only the
// creation of a record with the id of the hidden record fails. Write does not notice a change of a
// linked record, such as the Patient of a Device, during the write. Errors: those of the store,
// those of Options.View, Options.Restrict and Options.Events, *store.IDTakenError,
// Restriction.Refusal. If the caller may not lower the protection of a record, the error is that of
// Options.Unprivileged.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	pending := make([]*operation, 0, len(ops))
	at := make([]int, 0, len(ops)) // the index in ops of each pending operation
	for i, op := range ops {
		o, err := s.operationOf(op)
		if err != nil {
			return nil, err
		}
		if s.options.Events != nil && o.Events == nil {
			if o.Events, err = s.options.Events(o.Op); err != nil {
				return nil, err
			}
		}
		pending, at = append(pending, o), append(at, i)
	}
	if err := s.markUnseen(ctx, pending); err != nil {
		return nil, err
	}
	results := make([]store.Result, len(ops))
	for attempts := 0; attempts < maxAttempts; attempts++ {
		if len(pending) == 0 {
			return results, nil
		}
		written, err := s.behind.Write(ctx, s.approved(pending))
		if err == nil {
			for n, result := range written {
				results[at[n]] = result
			}
			return results, nil
		}
		n := slices.IndexFunc(pending, func(o *operation) bool { return o.reason != nil })
		switch {
		case n < 0:
			if err = s.explain(ctx, pending, err); err != nil {
				return nil, err
			}
			attempts-- // explain has removed a claim, of which the write has a limited number
		case errors.Is(err, errHidden), errors.Is(err, errLinks), errors.Is(err, errTombstone):
			if err := s.judgeAll(ctx, pending[n:], err); err != nil {
				return nil, err
			}
			if pending, at, err = withoutHidden(pending, at); err != nil {
				return nil, err
			}
		default:
			return nil, pending[n].reason
		}
	}
	return nil, fmt.Errorf("write records: other requests changed them during each attempt: %w", store.ErrUnavailable)
}

// CheckWrite implements store.Restricted.
func (s *Store) CheckWrite(op store.Op, current *store.Record) error {
	o, err := s.operationOf(op)
	if err != nil || !o.guarded {
		return err
	}
	if current != nil {
		o.judged, o.visible = current.Version, true
	}
	if err := s.approve(o, current); !errors.Is(err, errHidden) {
		return err
	}
	return o.onHidden()
}

// approved returns the operations with callbacks that the store calls under its locks. It resets
// their reasons.
func (s *Store) approved(pending []*operation) []store.Op {
	ops := make([]store.Op, len(pending))
	for n, o := range pending {
		ops[n] = o.Op
		o.reason = nil
		if o.Unreferenced {
			ops[n].Referrers = s.named
		}
		if o.guarded {
			ops[n].If.Approve = func(current *store.Record) error {
				o.reason = s.approve(o, current)
				return o.reason
			}
		}
	}
	return ops
}

// operationOf returns an operation with the condition and the restrictions of its type. The operation
// is guarded if its outcome depends on the stored record: some records of the type are hidden, may not
// have their protection lowered, or may not be written by the caller.
func (s *Store) operationOf(op store.Op) (*operation, error) {
	condition, err := s.condition(op.Key.Type)
	if err != nil {
		return nil, err
	}
	o := &operation{Op: op, condition: condition}
	if !s.options.Protects(o.Key.Type) {
		return o, nil
	}
	if o.create, err = s.restriction("create", o.Key.Type); err != nil {
		return nil, err
	}
	verb := "update"
	switch {
	case o.Kind != store.Put:
		verb = "delete"
	case o.Method == store.MethodPatch:
		verb = "patch"
	}
	if o.change, err = s.restriction(verb, o.Key.Type); err != nil {
		return nil, err
	}
	rights, err := s.options.View.Rights(o.Key.Type)
	o.guarded = !store.IsEverything(o.condition) || !rights.Privileged || o.create != unrestricted || o.change != unrestricted
	return o, err
}

// approve returns an error unless the operation is allowed. current is the newest version of its
// record, nil if there is none. Errors: errHidden, errLinks, errTombstone, and those of Write.
func (s *Store) approve(o *operation, current *store.Record) error {
	creates := current == nil || current.Deleted
	if creates && o.Kind == store.Put && !o.create.Holds(o.Key, o.Body) {
		return o.create.Refusal
	}
	if current == nil || current.Deleted && !o.needsLastVersion() {
		return nil
	}
	if current.Deleted {
		switch {
		case o.judged != current.Version:
			return errTombstone
		case !o.visible:
			return errHidden
		}
		// Fewer labels would show earlier versions that only the labels of the last version hide.
		return s.checkLowering(o, o.before)
	}
	labels := s.options.Labels(o.Key.Type, current.Body)
	visible := o.visible
	if o.judged != current.Version {
		follow := false
		visible = privacy.Holds(o.condition, labels, func(store.LinksTo, store.Link) bool {
			follow = true
			return true
		})
		if follow && visible {
			return errLinks
		}
	}
	if !visible || !o.change.Holds(current.Key, current.Body) {
		return errHidden
	}
	if o.Kind == store.Put && !o.change.Holds(o.Key, o.Body) {
		return o.change.Refusal
	}
	return s.checkLowering(o, labels)
}

// checkLowering returns an error if an update, or a write that restores a deleted record, lowers the
// protection of a record and the caller is not privileged.
func (s *Store) checkLowering(o *operation, before store.Labels) error {
	if o.Kind != store.Put || !s.options.View.Rules.Lowers(o.Key.Type, before, s.options.Labels(o.Key.Type, o.Body)) {
		return nil
	}
	rights, err := s.options.View.Rights(o.Key.Type)
	if err != nil || rights.Privileged {
		return err
	}
	return s.options.Unprivileged(o.Key.Type)
}

// judgeAll judges the first operation, which approve refused for a reason, and those later
// operations that approve may refuse for the same reason. A store calls approve only up to the
// first refusal, so the later operations may not have been checked.
func (s *Store) judgeAll(ctx context.Context, refused []*operation, reason error) error {
	for n, o := range refused {
		needed := o.depends() || errors.Is(reason, errTombstone) && o.needsLastVersion()
		if n > 0 && (o.judged != 0 || !needed || errors.Is(reason, errLinks) && !privacy.HasLinks(o.Key.Type)) {
			continue
		}
		if err := s.judge(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// depends reports whether the stored record can be hidden from the operation.
func (o *operation) depends() bool {
	return o.guarded && (!store.IsEverything(o.condition) || o.change != unrestricted)
}

// needsLastVersion reports whether, if the record is deleted, the operation depends on the version before the
// deletion: that can be hidden, or be protected more than the version that would restore the record.
func (o *operation) needsLastVersion() bool { return o.depends() || o.guarded && o.Kind == store.Put }

// judge reads, before a write, whether its record is visible, and sets judged, visible and before.
func (s *Store) judge(ctx context.Context, o *operation) error {
	o.judged, o.visible, o.before = 0, false, store.Labels{}
	record, err := s.behind.Get(ctx, o.Key)
	var deleted *store.DeletedError
	switch {
	case errors.As(err, &deleted):
		o.judged = deleted.Version
		var last store.Record
		if last, err = s.lastVersion(ctx, o.condition, o.change, deleted); err == nil {
			o.before = s.options.Labels(o.Key.Type, last.Body)
		}
		o.visible = err == nil || store.IsAbsent(err) && !o.depends()
	case err == nil:
		o.judged = record.Version
		err = s.check(ctx, o.condition, record)
		o.visible = err == nil && o.change.Holds(record.Key, record.Body)
	}
	if store.IsAbsent(err) {
		return nil
	}
	return err
}

// withoutHidden returns the operations without those on hidden records, which have no effect, and the
// same selection of at. Errors: those of onHidden.
func withoutHidden(pending []*operation, at []int) ([]*operation, []int, error) {
	var others []*operation
	var othersAt []int
	for n, o := range pending {
		if o.judged == 0 || o.visible {
			others, othersAt = append(others, o), append(othersAt, at[n])
			continue
		}
		if err := o.onHidden(); err != nil {
			return nil, nil, err
		}
	}
	return others, othersAt, nil
}

// onHidden returns the error of an operation on a hidden record, and nil if there is nothing to do.
func (o *operation) onHidden() error {
	condition := o.If
	condition.Approve = nil
	if err := condition.Check(o.Key, nil); err != nil {
		return err
	}
	if o.Kind == store.Put {
		return &store.IDTakenError{Key: o.Key}
	}
	return nil
}

// markUnseen adds to Op.Unseen the required records that privacy rules hide, so that the store
// treats them as absent. It does not add those that Options.Restrict excludes, because a record may
// keep references to them (package integrity).
func (s *Store) markUnseen(ctx context.Context, ops []*operation) error {
	put := map[store.Key]bool{}
	for _, o := range ops {
		put[o.Key] = o.Kind == store.Put
	}
	for _, o := range ops {
		keys := slices.DeleteFunc(slices.Clone(o.Requires), func(key store.Key) bool { return put[key] })
		hidden, err := s.hiddenByRules(ctx, keys)
		if err != nil {
			return err
		}
		o.Unseen = slices.Concat(o.Unseen, hidden)
	}
	return nil
}

// explain removes hidden records from an error of the store. If the holder of a claim is hidden and
// the claim expires, explain removes the claim from the pending operations and returns nil; the
// write must then be retried. Errors: err, and those of Hidden.
func (s *Store) explain(ctx context.Context, pending []*operation, err error) error {
	var claimed *store.ClaimError
	if !errors.As(err, &claimed) {
		return err
	}
	hidden, hiddenErr := s.Hidden(ctx, []store.Key{claimed.Holder})
	switch {
	case hiddenErr != nil:
		return hiddenErr // err names the holder, which may be hidden
	case len(hidden) == 0:
		return err
	}
	return s.unclaim(pending, claimed)
}

// named returns the condition of records that an error may name and count: those visible to the
// caller. It excludes all records of a type of which the caller may list only some.
func (s *Store) named(recordType string) (store.Condition, error) {
	restriction, err := s.restriction("list", recordType)
	if err != nil {
		return nil, err
	}
	if restriction != unrestricted {
		return store.Any{}, nil
	}
	return s.condition(recordType)
}

// unclaim removes a claim that a hidden record holds from the first pending operation that has the
// claim with an expiry, and returns nil. Claims with an expiry only serialize conditional writes
// with the same criteria, and to the caller the hidden record does not exist. For a claim without
// an expiry, unclaim returns an error that does not name the holder.
func (s *Store) unclaim(pending []*operation, claimed *store.ClaimError) error {
	for _, o := range pending {
		kept := slices.DeleteFunc(slices.Clone(o.Claims), func(claim store.Claim) bool {
			return claim.Line == claimed.Claim.Line && !claim.Expires.IsZero()
		})
		if len(kept) < len(o.Claims) {
			o.Claims = kept
			return nil
		}
	}
	return &store.ClaimError{Claim: claimed.Claim}
}
