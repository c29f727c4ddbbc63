package sites

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-health/paddock/apiserver/access"
)

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
	for _, description := range []*prometheus.Desc{
		poolSites, poolConnections, poolMax, poolAcquires, poolWaits, poolWaitTime, poolCanceled,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	for pool, users := range c.pools() {
		users.collect(pool.Stat(), metrics)
	}
}

// poolUsers are the sites of a pool.
type poolUsers struct {
	first access.Site
	count int
}

// pools are those of the sites that are served. As each site has one store, the first sites
// of two pools differ; as each namespace has one site, no name comes twice.
func (c *collector) pools() map[*pgxpool.Pool]poolUsers {
	c.mu.RLock()
	defer c.mu.RUnlock()
	pools := map[*pgxpool.Pool]poolUsers{}
	for _, siteID := range c.byNamespace {
		site := c.served[siteID]
		opened, inPostgres := site.Store.(*database)
		if !inPostgres {
			continue
		}
		users := pools[opened.pool]
		if users.count == 0 || site.Access.Namespace < users.first.Namespace {
			users.first = site.Access
		}
		users.count++
		pools[opened.pool] = users
	}
	return pools
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
