package cluster

import (
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxObjectCeiling is the largest object size that may be configured, in bytes:
// etcd refuses requests over 1.5 MiB.
const maxObjectCeiling = 1 << 20

// Limits bound what a site may store, in records and bytes.
type Limits struct {
	MaxRecords     int64
	MaxVersions    int
	MaxObjectBytes int64
	MaxBytes       int64
}

// DefaultLimits are those of a Site that says nothing. KEP-95 was tested with
// 1,500 objects of up to 10 kB in a namespace.
var DefaultLimits = Limits{MaxRecords: 2000, MaxVersions: 20, MaxObjectBytes: 256 << 10, MaxBytes: 64 << 20}

// retain drops the oldest of the superseded versions, given by their sizes,
// until the rest keeps the limits.
func (l Limits) retain(sizes []int64) []int64 {
	if over := len(sizes) - l.MaxVersions; over > 0 {
		sizes = sizes[over:]
	}
	var total int64 = recordOverhead
	for _, size := range sizes {
		total += size
	}
	for len(sizes) > 0 && total > l.MaxObjectBytes {
		total -= sizes[0]
		sizes = sizes[1:]
	}
	return sizes
}

// usage is what is stored, in records and bytes.
type usage struct {
	records, bytes int64
}

// admit checks that a plan fits into what the site and the cluster have left.
// Replicas learn of each other's writes within a second, so that the limits of a
// site under writes from several replicas can be passed by what they write in
// that time. Deleting is always possible.
func (l Limits) admit(p *plan, before int64, site, cluster usage, clusterLimits Limits) error {
	if p.action == doNothing || p.action == doPurge || p.next.Deleted {
		return nil
	}
	if recordSize(&p.next) > l.MaxObjectBytes {
		return &store.LimitError{Scope: store.LimitRecord, What: "bytes", Max: l.MaxObjectBytes}
	}
	var more usage
	if p.action == doCreate {
		more.records = 1
	}
	more.bytes = storedSize(&p.next) - before
	if err := more.fits(store.LimitSite, site, l); err != nil {
		return err
	}
	return more.fits(store.LimitCluster, cluster, clusterLimits)
}

func (u usage) fits(scope store.LimitScope, used usage, l Limits) error {
	if u.records > 0 && used.records+u.records > l.MaxRecords {
		return &store.LimitError{Scope: scope, What: "records", Max: l.MaxRecords}
	}
	if u.bytes > 0 && used.bytes+u.bytes > l.MaxBytes {
		return &store.LimitError{Scope: scope, What: "bytes", Max: l.MaxBytes}
	}
	return nil
}
