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

// listTimeout bounds how long a scrape waits for a cache that is not filled yet.
const listTimeout = time.Second

var (
	conditionMetric = prometheus.NewDesc("paddock_site_status_condition",
		"Conditions of Sites: 1 for the status that a condition has, 0 for the others. A Site that nobody has looked at has Ready Unknown.",
		[]string{"namespace", "name", "type", "status"}, nil)
	infoMetric = prometheus.NewDesc("paddock_site_info", "Always 1: what a Site is.",
		[]string{"namespace", "name", "site_id", "storage", "paused", "deleting"}, nil)
)

// measured are the conditions that metrics tell: ours alone, whoever writes others into a status.
var measured = append(slices.Clone(ownConditions), v1alpha1.ConditionIndexReady, v1alpha1.ConditionStorageNearLimit)

// Collector tells the state of all Sites when it is asked: a Site that is gone leaves nothing
// behind. Only the controller that leads tells it, so that no Site is counted twice.
type Collector struct {
	// Sites reads from a cache.
	Sites client.Reader
	// Elected is closed once this controller leads.
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
		// The other metrics are worth more than an error in place of them all.
		logf.Log.Error(err, "list Sites for their metrics")
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
