package sites

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// siteLabels are the labels of metrics of a Site.
var siteLabels = []string{"namespace", "name"}

// Metrics of records stored as objects of the cluster, per Site and for all. Storage in Postgres
// has no such metrics.
var (
	siteStorage = storage{
		records: prometheus.NewDesc("paddock_site_records",
			"Records that a site stores as objects of the cluster, without deleted ones.", siteLabels, nil),
		maxRecords: prometheus.NewDesc("paddock_site_limit_records",
			"Maximum number of records that a site may store as objects of the cluster. At the maximum, creates are refused.", siteLabels, nil),
		bytes: prometheus.NewDesc("paddock_site_bytes",
			"Bytes that a site stores as objects of the cluster: records and their history.", siteLabels, nil),
		maxBytes: prometheus.NewDesc("paddock_site_limit_bytes",
			"Maximum number of bytes that a site may store as objects of the cluster. At the maximum, a write first removes old versions, and is refused if that is not enough.", siteLabels, nil),
	}
	clusterStorage = storage{
		records: prometheus.NewDesc("paddock_cluster_records",
			"Records that all sites together store as objects of the cluster, without deleted ones.", nil, nil),
		maxRecords: prometheus.NewDesc("paddock_cluster_limit_records",
			"Maximum number of records that all sites together may store as objects of the cluster. At the maximum, creates are refused.", nil, nil),
		bytes: prometheus.NewDesc("paddock_cluster_bytes",
			"Bytes that all sites together store as objects of the cluster: records and their history.", nil, nil),
		maxBytes: prometheus.NewDesc("paddock_cluster_limit_bytes",
			"Maximum number of bytes that all sites together may store as objects of the cluster. At the maximum, a write first removes old versions of its site, and is refused if that is not enough.", nil, nil),
	}
)

// storage are the metrics of a store.Stats.
type storage struct {
	records, maxRecords, bytes, maxBytes *prometheus.Desc
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
	"1 while the entries of a site's audit log cannot be stored. There is no value for other sites.", siteLabels, nil)

// retentionRemoved counts what retention has removed, by kind: tombstones or versions.
var retentionRemoved = prometheus.NewDesc("paddock_retention_removed_total",
	"Deleted records (tombstones) and superseded versions that this process has removed because of spec.retention.", []string{"kind"}, nil)

// Metrics of connection pools. The labels of a pool name one of its Sites: the first one by namespace.
// They do not name the connection, because it contains a secret, and the pools of two users may have
// the same host and database.
var (
	poolSites = prometheus.NewDesc("paddock_postgres_pool_sites",
		"Sites that share a pool of connections to Postgres. The labels of a pool name one of these sites.", siteLabels, nil)
	poolConnections = prometheus.NewDesc("paddock_postgres_pool_connections",
		"Connections of a pool, by state: acquired for a statement or a transaction, idle, or constructing.", []string{"namespace", "name", "state"}, nil)
	poolMax = prometheus.NewDesc("paddock_postgres_pool_max_connections",
		"Maximum number of connections of a pool. When all are acquired, further statements wait for one.", siteLabels, nil)
	poolAcquires = prometheus.NewDesc("paddock_postgres_pool_acquires_total",
		"Acquisitions of a connection from a pool.", siteLabels, nil)
	poolWaits = prometheus.NewDesc("paddock_postgres_pool_waited_acquires_total",
		"Acquisitions that waited, because no connection was idle.", siteLabels, nil)
	poolWaitTime = prometheus.NewDesc("paddock_postgres_pool_wait_seconds_total",
		"Seconds that acquisitions of a connection waited, in total.", siteLabels, nil)
	replicaSearches = prometheus.NewDesc("paddock_postgres_replica_searches_total",
		"Searches that accepted a lag, of the sites of a pool whose database has read replicas, by outcome: answered by a replica, or by the primary because the replica was lagging or failed.", []string{"namespace", "name", "outcome"}, nil)
	poolCanceled = prometheus.NewDesc("paddock_postgres_pool_canceled_acquires_total",
		"Acquisitions that were canceled, for example because the client disconnected.", siteLabels, nil)
)

// Collector returns a Prometheus collector of the metrics of served Sites. It reads only memory.
// Options.Cluster must be set.
func (s *Sites) Collector() prometheus.Collector { return (*collector)(s) }

type collector Sites

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range slices.Concat(siteStorage.all(), clusterStorage.all(), []*prometheus.Desc{
		auditFailing, retentionRemoved, poolSites, poolConnections, poolMax, poolAcquires, poolWaits, poolWaitTime, poolCanceled, replicaSearches,
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
			if stats := opened.Stats(); !stats.Counted.IsZero() {
				siteStorage.collect(stats, metrics, site.Access.Namespace, site.Access.Name)
			}
		case *database:
			pools[opened.pool] = pools[opened.pool].with(site.Access, opened.replicas)
		}
	}
	for pool, users := range pools {
		users.collect(pool.Stat(), metrics)
	}
}

// all returns a copy of the served Sites, because requests wait while the lock is held. Each namespace
// has at most one Site, so labels are unique.
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
	// replicas is nil if the database has no read replicas.
	replicas *postgres.Replicas
}

func (u poolUsers) with(site access.Tenant, replicas *postgres.Replicas) poolUsers {
	u.replicas = replicas
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
	if u.replicas != nil {
		searches := u.replicas.Searches()
		tell(replicaSearches, prometheus.CounterValue, float64(searches.Answered), "answered")
		tell(replicaSearches, prometheus.CounterValue, float64(searches.Lagging), "lagging")
		tell(replicaSearches, prometheus.CounterValue, float64(searches.Failed), "failed")
	}
}
