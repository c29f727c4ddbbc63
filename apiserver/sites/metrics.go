package sites

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// What is stored as objects of the cluster, by each site and by all. How much a site stores in
// Postgres only Postgres knows.
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
		records:    metric("records", "Records that "+who+" as objects of the cluster, tombstones included."),
		maxRecords: metric("limit_records", "Most records that "+who+": more are refused."),
		bytes:      metric("bytes", "Bytes that "+who+" as objects of the cluster: records and their history."),
		maxBytes:   metric("limit_bytes", "Most bytes that "+who+": more are refused."),
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

// Pools are told apart by the first of their sites: a connection is a secret, and a host and a
// database do not tell the pools of two users apart.
var (
	poolSites       = poolMetric("sites", "Sites that share a pool of connections to Postgres. The pool is named after the first of them.")
	poolConnections = poolMetric("connections", "Connections of a pool: acquired, for a statement or a transaction; idle; or constructing.", "state")
	poolMax         = poolMetric("max_connections", "Most connections that a pool may have.")
	poolAcquires    = poolMetric("acquires_total", "Connections that were taken from a pool.")
	poolWaits       = poolMetric("waited_acquires_total", "Those that were not there at once: others had to be done, or a new one to be made.")
	poolWaitTime    = poolMetric("wait_seconds_total", "Time that these took.")
	poolCanceled    = poolMetric("canceled_acquires_total", "Connections that nobody waited for any longer.")
)

func poolMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("paddock_postgres_pool_"+name, help, append([]string{"namespace", "name"}, labels...), nil)
}

// Collector tells the state of what is served when it is asked, from memory alone.
func (s *Sites) Collector() prometheus.Collector { return (*collector)(s) }

type collector Sites

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range slices.Concat(siteStorage.all(), clusterStorage.all(), []*prometheus.Desc{
		poolSites, poolConnections, poolMax, poolAcquires, poolWaits, poolWaitTime, poolCanceled,
	}) {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	clusterStorage.collect(c.options.Cluster.Stats(), metrics)
	pools := map[*pgxpool.Pool]poolUsers{}
	for _, site := range c.all() {
		switch opened := site.Store.(type) {
		case *cluster.Site:
			siteStorage.collect(opened.Stats(), metrics, site.Access.Namespace, site.Access.Name)
		case *database:
			pools[opened.pool] = pools[opened.pool].with(site.Access)
		}
	}
	for pool, users := range pools {
		users.collect(pool.Stat(), metrics)
	}
}

// all are the sites that are served. As each namespace has one, no name comes twice. What is
// slow is done after it: requests wait for the lock.
func (c *collector) all() []Site {
	c.mu.RLock()
	defer c.mu.RUnlock()
	sites := make([]Site, 0, len(c.byNamespace))
	for _, siteID := range c.byNamespace {
		sites = append(sites, c.served[siteID])
	}
	return sites
}

// poolUsers are the sites of a pool. As each site has one store, the first sites of two pools
// differ.
type poolUsers struct {
	first access.Site
	count int
}

func (u poolUsers) with(site access.Site) poolUsers {
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
