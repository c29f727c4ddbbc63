package cluster

import (
	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
)

// Limits are the limits of a site. A write that would exceed a limit fails with *store.LimitError,
// unless the field says otherwise. DefaultLimits has the defaults.
type Limits struct {
	// MaxRecords is the maximum number of live records. Tombstones, jobs and records of type Event
	// do not count.
	MaxRecords int64
	// MaxVersions is the maximum number of superseded versions of a record. At the limit, a write drops
	// the oldest version instead of failing.
	MaxVersions int
	// MaxObjectBytes is the maximum size in bytes of a Record or RecordHistory as JSON. If a
	// RecordHistory would be larger, the write drops the oldest versions instead of failing.
	MaxObjectBytes int64
	// MaxBytes is the maximum size in bytes of all records of the site with their histories. At the
	// limit, a write removes the oldest tombstones and superseded versions to make room for its own
	// record. The write fails if that is not enough, or if old versions of more than 100 records would
	// have to be removed.
	MaxBytes int64
	// MaxPending is the maximum number of pending webhook deliveries. Pending deliveries and dead
	// letters together may be 10 times as many. Deletes and purges are not limited. If MaxPending is 0,
	// Cluster.Open uses the default.
	MaxPending int64
}

// DefaultLimits are the limits of a Site that sets none. For comparison: Kubernetes was tested with
// 1,500 custom resources of up to 10 kB in a namespace (KEP-95).
var DefaultLimits = Limits{MaxRecords: 2000, MaxVersions: 20, MaxObjectBytes: 256 << 10, MaxBytes: 64 << 20, MaxPending: 1000}

// maxRequestBytes is the maximum size in bytes of an object that is written to etcd, whose default
// --max-request-bytes is 1.5 MiB. The rest is for the object's metadata.
const maxRequestBytes = 1<<20 + 448<<10

// trimHistory returns those of the sizes of superseded versions, oldest first, that are kept when
// newest is written. It drops the oldest versions until the rest is within MaxVersions and
// MaxObjectBytes. The next write adds newest to the RecordHistory before it drops old versions, so
// trimHistory leaves room for newest too.
func (l Limits) trimHistory(sizes []int64, newest *recordsv1.RecordSpec) []int64 {
	room := l.MaxObjectBytes
	if room+supersededOverhead+inBase64(int64(len(newest.Body))) > maxRequestBytes {
		past := supersede(newest) // usually smaller, because it is compressed
		room = min(room, maxRequestBytes-supersededSize(&past))
	}
	if over := len(sizes) - l.MaxVersions; over > 0 {
		sizes = sizes[over:]
	}
	var total int64 = recordOverhead
	for _, size := range sizes {
		total += size
	}
	for len(sizes) > 0 && total > room {
		total -= sizes[0]
		sizes = sizes[1:]
	}
	return sizes
}

// usage is the number of live records, the bytes of all records, and the number of deliveries that
// their events will have. Records of type Event do not count as records, because the delivery
// process limits their number. Tombstones do not count as records either, so that a delete makes room
// for a create. Jobs count neither as records nor in bytes.
type usage struct {
	records, bytes, pending int64
}

func usageOf(spec *recordsv1.RecordSpec) usage {
	if spec.Type == store.JobType {
		return usage{}
	}
	events, pending := deliveries.Size(spec.Events)
	used := usage{bytes: storedSize(spec) + inBase64(events), pending: pending}
	if spec.Type != deliveries.EventType && !spec.Deleted && !spec.Purging {
		used.records = 1
	}
	return used
}

func (u usage) minus(other usage) usage {
	return usage{records: u.records - other.records, bytes: u.bytes - other.bytes, pending: u.pending - other.pending}
}

func (u usage) plus(other usage) usage { return u.minus(usage{}.minus(other)) }

// check returns a *store.LimitError if a plan exceeds the limits of the record, the site or the
// cluster. before is the usage of the superseded version. Writes of other replicas are counted with
// a delay of at most a second, so concurrent writers can exceed a limit by what they write in that
// time. Deletes and purges are never limited.
func (l Limits) check(p *plan, before, site, cluster usage, clusterLimits Limits) error {
	if p.Action == store.ActionNone || p.Action == store.ActionPurge || p.next.Deleted {
		return nil
	}
	if recordSize(&p.next) > l.MaxObjectBytes {
		return &store.LimitError{Scope: store.LimitRecord, What: "bytes", Max: l.MaxObjectBytes}
	}
	more := usageOf(&p.next).minus(before)
	if err := more.checkLimits(store.LimitSite, site, l); err != nil {
		return err
	}
	return more.checkLimits(store.LimitCluster, cluster, clusterLimits)
}

func (u usage) checkLimits(scope store.LimitScope, used usage, l Limits) error {
	if u.records > 0 && used.records+u.records > l.MaxRecords {
		return &store.LimitError{Scope: scope, What: "records", Max: l.MaxRecords}
	}
	if u.bytes > 0 && used.bytes+u.bytes > l.MaxBytes {
		return &store.LimitError{Scope: scope, What: "bytes", Max: l.MaxBytes}
	}
	return nil
}
