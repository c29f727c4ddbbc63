package site

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// listTimeout is how long a scrape waits for the cache to sync. After it, the scrape has no metrics of
// Sites.
const listTimeout = time.Second

var (
	conditionMetric = prometheus.NewDesc("paddock_site_status_condition",
		"Conditions of Sites: 1 for the current status of a condition, 0 for the other statuses. A Site that has not been reconciled yet has Ready Unknown.",
		[]string{"namespace", "name", "type", "status"}, nil)
	infoMetric = prometheus.NewDesc("paddock_site_info", "Properties of a Site, as labels. The value is always 1.",
		[]string{"namespace", "name", "site_id", "storage", "paused", "deleting"}, nil)
)

// measured are the conditions with metrics: those that Paddock sets. Conditions of other
// controllers have none.
var measured = append(slices.Clone(ownConditions), v1alpha1.ConditionIndexReady, v1alpha1.ConditionStorageNearLimit)

// Collector collects the state of all Sites at each scrape, so that deleted Sites have no metrics.
// Only the leader returns metrics, so that no Site is counted twice.
type Collector struct {
	// Sites reads the Sites from a cache.
	Sites client.Reader
	// Elected is closed once this controller is the leader.
	Elected <-chan struct{}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- conditionMetric
	descriptions <- infoMetric
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	var sites v1alpha1.SiteList
	if err := c.Sites.List(ctx, &sites, client.UnsafeDisableDeepCopy); err != nil {
		// Reporting the error to Prometheus would suppress all other metrics.
		logf.Log.Error(err, "cannot list the Sites for their metrics")
		return
	}
	for i := range sites.Items {
		collectSite(&sites.Items[i], metrics)
	}
}

func collectSite(site *v1alpha1.Site, metrics chan<- prometheus.Metric) {
	_, paused := site.Annotations[v1alpha1.PausedAnnotation]
	metrics <- prometheus.MustNewConstMetric(infoMetric, prometheus.GaugeValue, 1, site.Namespace, site.Name,
		site.SiteID(), string(site.Spec.Storage.Type), strconv.FormatBool(paused), strconv.FormatBool(site.DeletionTimestamp != nil))
	for _, kind := range measured {
		condition := meta.FindStatusCondition(site.Status.Conditions, kind)
		if condition == nil && kind != v1alpha1.ConditionReady {
			continue
		}
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			var is float64
			if condition == nil && status == metav1.ConditionUnknown || condition != nil && status == condition.Status {
				is = 1
			}
			metrics <- prometheus.MustNewConstMetric(conditionMetric, prometheus.GaugeValue, is, site.Namespace, site.Name, kind, string(status))
		}
	}
}
