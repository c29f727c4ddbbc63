package sites

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// Metrics of records stored as objects of the cluster, per Site and for all. Storage in Postgres
// has no such metrics.
var (
	siteStorage    = storageMetrics("site", "a site stores", "namespace", "name")
	clusterStorage = storageMetrics("cluster", "all sites together store")
)

// storage are the metrics of a store.Stats.
type storage struct {
	records, maxRecords, bytes, maxBytes *prometheus.Desc
}

func storageMetrics(scope, who string, labels ...string) storage {
	metric := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("paddock_"+scope+"_"+name, help, labels, nil)
	}
	return storage{
		records:    metric("records", "Records that "+who+" as objects of the cluster, without deleted ones."),
		maxRecords: metric("limit_records", "Limit of the records that "+who+". Writes beyond it are refused."),
		bytes:      metric("bytes", "Bytes that "+who+" as objects of the cluster: records and their history."),
		maxBytes:   metric("limit_bytes", "Limit of the bytes that "+who+". Writes beyond it are refused."),
	}
}

func (s storage) all() []*prometheus.Desc {
	return []*prometheus.Desc{s.records, s.maxRecords, s.bytes, s.maxBytes}
}

func (s storage) collect(stats store.Stats, metrics chan<- prometheus.Metric, labels ...string) {
	for i, value := range []int64{stats.Records, stats.MaxRecords, stats.Bytes, stats.MaxBytes} {
		metrics <- prometheus.MustNewConstMetric(s.all()[i], prometheus.GaugeValue, float64(value), labels...)
	}
}

// auditFailing has a value only for Sites whose audit entries currently cannot be stored.
var auditFailing = prometheus.NewDesc("paddock_site_audit_failing",
	"1 while the entries of a site's audit log cannot be stored. There is no value for other sites.", []string{"namespace", "name"}, nil)

// retentionRemoved counts what retention has removed, by kind: tombstones or versions.
var retentionRemoved = prometheus.NewDesc("paddock_retention_removed_total",
	"Deleted records (tombstones) and superseded versions that this process has removed because of spec.retention.", []string{"kind"}, nil)

// Metrics of connection pools. The labels of a pool name its first Site, because a connection
// contains a secret, and the pools of two users may have the same host and database.
var (
	poolSites       = poolMetric("sites", "Sites that share a pool of connections to Postgres. The pool is named after the first of them.")
	poolConnections = poolMetric("connections", "Connections of a pool, by state: acquired for a statement or a transaction, idle, or constructing.", "state")
	poolMax         = poolMetric("max_connections", "Maximum number of connections of a pool. Statements wait for a connection beyond it.")
	poolAcquires    = poolMetric("acquires_total", "Acquisitions of a connection from a pool.")
	poolWaits       = poolMetric("waited_acquires_total", "Acquisitions that waited, because no connection was idle.")
	poolWaitTime    = poolMetric("wait_seconds_total", "Seconds that acquisitions of a connection waited, in total.")
	poolCanceled    = poolMetric("canceled_acquires_total", "Acquisitions that were canceled, for example because the client disconnected.")
)

func poolMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("paddock_postgres_pool_"+name, help, append([]string{"namespace", "name"}, labels...), nil)
}

// Collector returns a collector of the state of served Sites. It reads only memory.
func (s *Sites) Collector() prometheus.Collector { return (*collector)(s) }

type collector Sites

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range slices.Concat(siteStorage.all(), clusterStorage.all(), []*prometheus.Desc{
		auditFailing, retentionRemoved, poolSites, poolConnections, poolMax, poolAcquires, poolWaits, poolWaitTime, poolCanceled,
	}) {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	clusterStorage.collect(c.options.Cluster.Stats(), metrics)
	removed := (*Sites)(c).Retained()
	metrics <- prometheus.MustNewConstMetric(retentionRemoved, prometheus.CounterValue, float64(removed.Tombstones), "tombstones")
	metrics <- prometheus.MustNewConstMetric(retentionRemoved, prometheus.CounterValue, float64(removed.Versions), "versions")
	pools := map[*pgxpool.Pool]poolUsers{}
	for _, site := range c.all() {
		if site.Audit != nil && site.Audit.Failing() {
			metrics <- prometheus.MustNewConstMetric(auditFailing, prometheus.GaugeValue, 1, site.Access.Namespace, site.Access.Name)
		}
		switch opened := site.Store.(type) {
		case *cluster.Store:
			siteStorage.collect(opened.Stats(), metrics, site.Access.Namespace, site.Access.Name)
		case *database:
			pools[opened.pool] = pools[opened.pool].with(site.Access)
		}
	}
	for pool, users := range pools {
		users.collect(pool.Stat(), metrics)
	}
}

// all returns the served Sites. Each namespace has at most one, so labels are unique. It copies
// them, because requests wait while the lock is held.
func (c *collector) all() []ServedSite {
	c.mu.RLock()
	defer c.mu.RUnlock()
	sites := make([]ServedSite, 0, len(c.byNamespace))
	for _, siteID := range c.byNamespace {
		sites = append(sites, c.served[siteID])
	}
	return sites
}

// poolUsers are the Sites of a pool. Each Site has one store, so the first Sites of two pools
// differ.
type poolUsers struct {
	first access.Tenant
	count int
}

func (u poolUsers) with(site access.Tenant) poolUsers {
	if u.count == 0 || site.Namespace < u.first.Namespace {
		u.first = site
	}
	u.count++
	return u
}

func (u poolUsers) collect(stat *pgxpool.Stat, metrics chan<- prometheus.Metric) {
	tell := func(description *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, kind, value, append([]string{u.first.Namespace, u.first.Name}, labels...)...)
	}
	tell(poolSites, prometheus.GaugeValue, float64(u.count))
	tell(poolConnections, prometheus.GaugeValue, float64(stat.AcquiredConns()), "acquired")
	tell(poolConnections, prometheus.GaugeValue, float64(stat.IdleConns()), "idle")
	tell(poolConnections, prometheus.GaugeValue, float64(stat.ConstructingConns()), "constructing")
	tell(poolMax, prometheus.GaugeValue, float64(stat.MaxConns()))
	tell(poolAcquires, prometheus.CounterValue, float64(stat.AcquireCount()))
	tell(poolWaits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()))
	tell(poolWaitTime, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds())
	tell(poolCanceled, prometheus.CounterValue, float64(stat.CanceledAcquireCount()))
}
