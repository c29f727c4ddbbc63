package sites

import (
	"log/slog"
	"strings"
	"time"

	"github.com/rs/cors"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/web"
)

// settingsOf returns the settings of a Site object. No other code makes them.
func settingsOf(object *sitesv1.Site) settings.Settings {
	spec := &object.Spec
	return settings.Settings{
		ID:  object.SiteID(),
		URL: urlOf(object),
		Access: access.Tenant{
			Namespace: object.Namespace, Name: object.Name,
			APIServerAudience: spec.Access.Kubernetes.APIServerAudience,
			Hidden:            spec.Access.Hidden,
		},
		Limits:            spec.Limits,
		UpdateCreate:      spec.FHIR.UpdateCreate == nil || *spec.FHIR.UpdateCreate,
		EnforceReferences: spec.FHIR.ReferentialIntegrity == sitesv1.ReferentialIntegrityEnforce,
		Lenient:           spec.FHIR.UnknownParameters == sitesv1.UnknownParametersIgnore,
		Zone:              zoneOf(object),
		Privacy:           privacyOf(spec),
		EventTypes:        eventsOf(object),
		CORS:              corsOf(spec.CORS),
		Conditions:        object.Status.Conditions,
	}
}

// urlOf returns the Site's own URL, if the controller has allowed it.
func urlOf(object *sitesv1.Site) string {
	if object.Spec.Exposure == nil || !strings.HasSuffix(object.Status.URL, "/site/"+object.SiteID()) {
		return ""
	}
	return object.Status.URL
}

func corsOf(spec *sitesv1.CORS) *cors.Cors {
	if spec == nil {
		return nil
	}
	origins := make([]string, len(spec.AllowOrigins))
	for i, origin := range spec.AllowOrigins {
		origins[i] = string(origin)
	}
	return web.AllowOrigins(origins)
}

// zoneOf returns the Site's time zone. kube-apiserver has validated its name. If this program does
// not know the name, zoneOf returns nil, which is UTC.
func zoneOf(object *sitesv1.Site) *time.Location {
	zone, err := time.LoadLocation(object.Spec.TimeZone)
	if err != nil {
		slog.Error("this release does not know the spec.timeZone of a site; it uses UTC", "timeZone", object.Spec.TimeZone, "site", object.Namespace+"/"+object.Name, "error", err)
		return nil
	}
	return zone
}

// clusterLimits returns the limits of a Site with etcd-backed storage.
func clusterLimits(spec *sitesv1.ClusterStorage) cluster.Limits {
	defaults := cluster.DefaultLimits
	if spec == nil {
		return defaults
	}
	return cluster.Limits{
		MaxRecords:     int64(settings.Int(spec.MaxRecords, int(defaults.MaxRecords))),
		MaxVersions:    settings.Int(spec.MaxVersions, defaults.MaxVersions),
		MaxObjectBytes: settings.Bytes(spec.MaxObjectSize, defaults.MaxObjectBytes),
		MaxBytes:       settings.Bytes(spec.MaxSize, defaults.MaxBytes),
		MaxPending:     int64(settings.Int(spec.MaxPendingDeliveries, int(defaults.MaxPending))),
	}
}
