package deliveries

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

const (
	// leaseLabel is a label of all Leases of this package. Its value is memberLease for the Lease of a
	// replica, and shardLease for that of a shard.
	leaseLabel   = "records.paddock.health/delivery-lease"
	memberLease  = "member"
	shardLease   = "shard"
	memberPrefix = "paddock-delivery-member-"
	shardPrefix  = "paddock-delivery-shard-"
)

// leases distributes the shards of sites among the replicas. Each replica renews a member Lease of
// its own. From these Leases, every replica computes which replica should have which shard. The
// Lease of a shard names the replica that has it.
//
// A replica considers a Lease expired if it has seen no renewal for the duration, by its own clock.
// Therefore the clocks of replicas need not agree. A replica that cannot renew the Lease of a shard
// stops its work on the shard after two thirds of the duration.
type leases struct {
	client   coordinationclient.LeaseInterface
	identity string
	shards   int
	duration time.Duration
	// start begins the work on a shard. stop ends it, and returns when it has ended.
	start func(shard int, lease *heldLease)
	stop  func(shard int)

	// seen has the last known state of each Lease by name. held are the Leases of the shards of this replica.
	seen map[string]sighting
	held map[int]*heldLease
}

// heldLease is the Lease of a shard of this replica. It is safe for concurrent use.
type heldLease struct {
	// overdueAt is when this replica stops its work on the shard, unless it renews the Lease before.
	overdueAt atomic.Pointer[time.Time]
}

// isOverdue compares the wall clock as well, because the monotonic clock stands still while the machine is
// suspended.
func (h *heldLease) isOverdue() bool {
	now, at := time.Now(), *h.overdueAt.Load()
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// sighting is a state of a Lease, and when this replica first saw it.
type sighting struct {
	resourceVersion string
	since           time.Time
}

// run takes and releases shards until ctx ends. Then it releases all shards of this replica.
func (l *leases) run(ctx context.Context) {
	l.seen, l.held = map[string]sighting{}, map[int]*heldLease{}
	ticker := time.NewTicker(l.duration / 6)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := l.tick(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot distribute shards of event delivery among replicas; the server will retry", "error", err)
		}
		l.dropOverdue()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	l.leave()
}

// tick reads all Leases, renews the member Lease of this replica, and takes, renews or releases
// shards. It ends at the latest after a third of the duration, or when the first held shard is overdue.
func (l *leases) tick(ctx context.Context) error {
	until := time.Now().Add(l.duration / 3)
	for _, lease := range l.held {
		if overdue := *lease.overdueAt.Load(); overdue.Before(until) {
			until = overdue
		}
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	list, err := l.client.List(ctx, metav1.ListOptions{LabelSelector: leaseLabel})
	if err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	found := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		lease := &list.Items[i]
		found[lease.Name] = lease
		if l.seen[lease.Name].resourceVersion != lease.ResourceVersion {
			l.seen[lease.Name] = sighting{lease.ResourceVersion, time.Now()}
		}
	}
	maps.DeleteFunc(l.seen, func(name string, _ sighting) bool { return found[name] == nil })
	if err := l.renew(ctx, memberPrefix+l.identity, memberLease, found[memberPrefix+l.identity]); err != nil {
		return fmt.Errorf("renew the lease of this replica: %w", err)
	}
	members := l.members(ctx, found)
	for shard := range l.shards {
		l.look(ctx, shard, found[shardName(shard)], wants(shard, members) == l.identity)
	}
	return nil
}

// members returns the replicas whose member Leases have not expired, including this one. It deletes
// those that have not been renewed for ten durations.
func (l *leases) members(ctx context.Context, found map[string]*coordinationv1.Lease) []string {
	members := []string{l.identity}
	for name, lease := range found {
		member, ok := strings.CutPrefix(name, memberPrefix)
		if !ok || member == l.identity {
			continue
		}
		switch age := time.Since(l.seen[name].since); {
		case age < l.duration:
			members = append(members, member)
		case age > 10*l.duration:
			_ = l.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion}})
		}
	}
	slices.Sort(members)
	return members
}

// look takes, renews or releases one shard. wanted reports whether this replica should have it.
// Errors are only logged, because the next tick tries again.
func (l *leases) look(ctx context.Context, shard int, lease *coordinationv1.Lease, wanted bool) {
	mine, held := l.held[shard]
	name := shardName(shard)
	holder := ""
	if lease != nil && lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	switch {
	case held && holder != l.identity:
		slog.WarnContext(ctx, "another replica has taken a shard of event delivery from this replica", "shard", shard, "holder", holder)
		l.drop(shard)
	case held && !wanted:
		l.drop(shard)
		l.release(ctx, lease)
	case held && time.Until(*mine.overdueAt.Load()) > l.duration/3: // renewed less than a third of the duration ago
	case held || wanted && (holder == "" || holder == l.identity || time.Since(l.seen[name].since) >= l.duration):
		overdueAt := time.Now().Add(l.overdueAfter())
		if err := l.renew(ctx, name, shardLease, lease); err != nil {
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				slog.WarnContext(ctx, "cannot take or renew the lease of a shard; the server will retry", "shard", shard, "error", err)
			}
			return
		}
		if held {
			mine.overdueAt.Store(&overdueAt)
			return
		}
		mine = &heldLease{}
		mine.overdueAt.Store(&overdueAt)
		l.held[shard] = mine
		l.start(shard, mine)
	}
}

// renew makes this replica the holder of a Lease and sets its renewal time. lease is the state that
// was read, or nil to create the Lease. It fails with a conflict if the Lease has changed.
func (l *leases) renew(ctx context.Context, name, kind string, lease *coordinationv1.Lease) error {
	now := metav1.NowMicro()
	if lease == nil {
		_, err := l.client.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{leaseLabel: kind}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &l.identity, LeaseDurationSeconds: ptr.To(int32(max(1, l.duration/time.Second))),
				AcquireTime: &now, RenewTime: &now,
			},
		}, metav1.CreateOptions{})
		return err
	}
	lease = lease.DeepCopy()
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != l.identity {
		lease.Spec.AcquireTime = &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &l.identity, &now
	_, err := l.client.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// overdueAfter returns how long this replica works on a shard without renewing its Lease.
func (l *leases) overdueAfter() time.Duration { return 2 * l.duration / 3 }

// dropOverdue ends the work on the shards that are overdue.
func (l *leases) dropOverdue() {
	var overdue []int
	for shard, lease := range l.held {
		if lease.isOverdue() {
			slog.Warn("the lease of a shard was not renewed in time; this replica stops work on the shard", "shard", shard)
			overdue = append(overdue, shard)
		}
	}
	l.drop(overdue...)
}

// drop ends the work on shards concurrently, and returns when it has ended on all of them.
func (l *leases) drop(shards ...int) {
	var group sync.WaitGroup
	for _, shard := range shards {
		group.Go(func() { l.stop(shard) })
		delete(l.held, shard)
	}
	group.Wait()
}

// release removes the holder from the Lease of a shard, so that another replica can take the shard
// at once.
func (l *leases) release(ctx context.Context, lease *coordinationv1.Lease) {
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = ptr.To("")
	if _, err := l.client.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		slog.WarnContext(ctx, "cannot release the lease of a shard; another replica takes the shard when the lease expires", "lease", lease.Name, "error", err)
	}
}

// leave releases all shards of this replica and deletes its member Lease.
func (l *leases) leave() {
	held := slices.Collect(maps.Keys(l.held))
	l.drop(held...)
	ctx, cancel := context.WithTimeout(context.Background(), l.duration/3)
	defer cancel()
	for _, shard := range held {
		if lease, err := l.client.Get(ctx, shardName(shard), metav1.GetOptions{}); err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == l.identity {
			l.release(ctx, lease)
		}
	}
	_ = l.client.Delete(ctx, memberPrefix+l.identity, metav1.DeleteOptions{}) // if this fails, the Lease expires
}

func shardName(shard int) string { return shardPrefix + strconv.Itoa(shard) }

// wants returns the member that should have a shard: the one with the highest hash of shard and
// member (rendezvous hashing). So few shards move when a member is added or removed.
func wants(shard int, members []string) string {
	best, most := "", uint64(0)
	for _, member := range members {
		if n := hash(shardName(shard) + " " + member); best == "" || n > most {
			best, most = member, n
		}
	}
	return best
}

// shardOf returns the shard of a namespace.
func shardOf(namespace string, shards int) int { return int(hash(namespace) % uint64(shards)) }

// hash returns the FNV-1a hash of a text, mixed with the first round of the finalizer of MurmurHash3.
// Without mixing, the last letters of the text would hardly change the high bits.
func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	n := h.Sum64()
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	return n
}
