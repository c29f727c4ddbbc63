package ahds

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/traffic"
)

// usagePeriod is the time that the figures of requests and deliveries cover.
const usagePeriod = time.Hour

// siteUsage is the response of GET …/site-usage.
type siteUsage struct {
	SiteID string `json:"siteId"`
	// Storage and Deliveries are of the whole site. They are omitted while the storage is not open.
	// Storage is also omitted until it has been counted.
	Storage    *storageUsage  `json:"storage,omitempty"`
	Deliveries *deliveryUsage `json:"deliveries,omitempty"`
	// Requests counts the requests to the API server that responds, not to its other replicas.
	Requests *requestUsage `json:"requests,omitempty"`
}

type storageUsage struct {
	Records int64 `json:"records"`
	// MaxRecords and MaxBytes are omitted if the storage has no limit.
	MaxRecords int64  `json:"maxRecords,omitzero"`
	Bytes      int64  `json:"bytes"`
	MaxBytes   int64  `json:"maxBytes,omitzero"`
	CountedAt  string `json:"countedAt"`
}

type requestUsage struct {
	Server      string          `json:"server"`
	Since       string          `json:"since"`
	StepSeconds int64           `json:"stepSeconds"`
	BoundsMs    []int64         `json:"boundsMs"`
	Samples     []requestSample `json:"samples"`
}

type requestSample struct {
	At           string  `json:"at"`
	Requests     int64   `json:"requests"`
	ClientErrors int64   `json:"clientErrors"`
	ServerErrors int64   `json:"serverErrors"`
	Durations    []int64 `json:"durations"`
}

type deliveryUsage struct {
	From        string           `json:"from"`
	StepSeconds int64            `json:"stepSeconds"`
	Samples     []deliverySample `json:"samples"`
}

type deliverySample struct {
	At        string `json:"at"`
	Pending   int64  `json:"pending"`
	Delivered int64  `json:"delivered"`
	Failed    int64  `json:"failed"`
}

// siteUsage serves GET …/site-usage: what the Site stores, and its requests and deliveries in the
// last hour.
func (h *handler) siteUsage(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	// Counting deliveries costs as much as a search.
	end, err := r.site.Limiter.Search(r.Context(), r.caller.Name)
	if err != nil {
		return err
	}
	defer end()
	usage := siteUsage{SiteID: r.site.ID}
	if r.site.Deliveries != nil {
		recent, err := r.site.Deliveries.Recent(r.Context(), h.Now().Truncate(time.Minute).Add(-usagePeriod))
		if err != nil {
			return err
		}
		usage.Deliveries = deliveriesOf(recent)
	}
	if r.site.Store != nil {
		usage.Storage = storageOf(r.site.Store.Stats())
	}
	if h.Traffic != nil {
		usage.Requests = requestsOf(h.Traffic(r.site.ID))
	}
	body, err := json.Marshal(usage)
	if err != nil {
		return err
	}
	return r.respond(w, http.StatusOK, typeJSON, jsontext.Value(body))
}

// storageOf returns nil if the storage could not be counted yet.
func storageOf(stats store.Stats) *storageUsage {
	if stats.Counted.IsZero() {
		return nil
	}
	return &storageUsage{
		Records: stats.Records, MaxRecords: stats.MaxRecords, Bytes: stats.Bytes, MaxBytes: stats.MaxBytes, CountedAt: schema.Stamp(stats.Counted),
	}
}

func requestsOf(report traffic.Report) *requestUsage {
	usage := &requestUsage{
		Server: report.Server, Since: schema.Stamp(report.Since), StepSeconds: int64(traffic.Step / time.Second), Samples: []requestSample{},
	}
	for _, bound := range traffic.Bounds {
		usage.BoundsMs = append(usage.BoundsMs, bound.Milliseconds())
	}
	for i := range report.Samples {
		s := &report.Samples[i]
		usage.Samples = append(usage.Samples, requestSample{
			At: schema.Stamp(s.At), Requests: s.Requests, ClientErrors: s.ClientErrors, ServerErrors: s.ServerErrors, Durations: s.Durations[:],
		})
	}
	return usage
}

func deliveriesOf(recent delivery.Recent) *deliveryUsage {
	usage := &deliveryUsage{From: schema.Stamp(recent.From), StepSeconds: int64(time.Minute / time.Second), Samples: []deliverySample{}}
	for _, m := range recent.Minutes {
		usage.Samples = append(usage.Samples, deliverySample{At: schema.Stamp(m.At), Pending: m.Pending, Delivered: m.Delivered, Failed: m.Failed})
	}
	return usage
}
