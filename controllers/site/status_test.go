package site

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var (
	earlier = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later   = earlier.Add(time.Hour + 300*time.Millisecond)
)

var (
	holds   = &verdict{metav1.ConditionTrue, v1alpha1.ReasonAccepted, "holds"}
	refused = &verdict{metav1.ConditionFalse, v1alpha1.ReasonSiteIDTaken, "taken"}
	stored  = &verdict{metav1.ConditionTrue, v1alpha1.ReasonClusterStorage, "stored"}
	haunted = &verdict{metav1.ConditionFalse, v1alpha1.ReasonForeignRecords, "foreign"}
	unready = &verdict{metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "none"}
	away    = &verdict{metav1.ConditionFalse, v1alpha1.ReasonDatabaseUnreachable, "away"}
	exposed = &verdict{metav1.ConditionTrue, v1alpha1.ReasonExposed, "exposed"}
	barred  = &verdict{metav1.ConditionFalse, v1alpha1.ReasonHostNotAllowed, "barred"}
	routing = &verdict{metav1.ConditionFalse, v1alpha1.ReasonRoutePending, "routing"}
	unknown = &verdict{metav1.ConditionUnknown, v1alpha1.ReasonPending, "not yet"}
)

func TestStatusOf(t *testing.T) {
	serving := statusOf(oak, findings{accepted: holds, storageReady: stored, siteKey: "key"}, "https://fhir.example.org", earlier)
	asks := &v1alpha1.Exposure{Ingress: &v1alpha1.IngressExposure{Host: "oak.example.org"}}
	asking := oak.DeepCopy()
	asking.Spec.Exposure = asks
	shown := statusOf(asking, findings{
		accepted: holds, storageReady: stored, siteKey: "key", exposed: exposed, url: "https://oak.example.org/site/1042",
	}, "https://fhir.example.org", earlier)
	tests := map[string]struct {
		before v1alpha1.SiteStatus
		found  findings
		// status and reason by condition
		want    map[string]string
		url     string
		siteKey string
		storage v1alpha1.StorageType
		asks    *v1alpha1.Exposure
	}{
		"serving": {
			found: findings{accepted: holds, storageReady: stored, siteKey: "key"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "False Serving", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
		"refused": {
			found: findings{accepted: refused, storageReady: unready},
			want: map[string]string{
				"Ready": "False SiteIDTaken", "Reconciling": "False SiteIDTaken", "Stalled": "True SiteIDTaken",
				"Accepted": "False SiteIDTaken", "StorageReady": "False NotAccepted",
			},
		},
		"refused after it was serving": {
			before: serving,
			found:  findings{accepted: refused, storageReady: unready},
			want: map[string]string{
				"Ready": "False SiteIDTaken", "Reconciling": "False SiteIDTaken", "Stalled": "True SiteIDTaken",
				"Accepted": "False SiteIDTaken", "StorageReady": "False NotAccepted",
			},
		},
		"foreign records": {
			found: findings{accepted: holds, storageReady: haunted},
			want: map[string]string{
				"Ready": "False ForeignRecords", "Reconciling": "False ForeignRecords", "Stalled": "True ForeignRecords",
				"Accepted": "True Accepted", "StorageReady": "False ForeignRecords",
			},
			url: "https://fhir.example.org/site/1042",
		},
		"failed before anything was known": {
			found: findings{failed: "claiming failed"},
			want: map[string]string{
				"Ready": "Unknown Pending", "Reconciling": "True Retrying", "Stalled": "False Pending",
				"Accepted": "Unknown Pending", "StorageReady": "Unknown Pending",
			},
		},
		"failed while serving": {
			before: serving,
			found:  findings{failed: "claiming failed"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "True Retrying", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
		"failed to check the storage of a new claim": {
			before: serving,
			found:  findings{accepted: holds, storageReady: unknown, failed: "checking failed"},
			want: map[string]string{
				"Ready": "Unknown Pending", "Reconciling": "True Retrying", "Stalled": "False Pending",
				"Accepted": "True Accepted", "StorageReady": "Unknown Pending",
			},
			url: "https://fhir.example.org/site/1042",
		},
		"serving from Postgres": {
			storage: v1alpha1.StoragePostgres,
			found:   findings{accepted: holds, storageReady: &postgresReady, schemaReady: &schemaReady, siteKey: "key"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "False Serving", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True PostgresStorage", "SchemaReady": "True Migrated",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
		"the database was never reached": {
			storage: v1alpha1.StoragePostgres,
			found:   findings{accepted: holds, storageReady: away, schemaReady: &noDatabase},
			want: map[string]string{
				"Ready": "False DatabaseUnreachable", "Reconciling": "True DatabaseUnreachable", "Stalled": "False DatabaseUnreachable",
				"Accepted": "True Accepted", "StorageReady": "False DatabaseUnreachable", "SchemaReady": "Unknown NoDatabase",
			},
			url: "https://fhir.example.org/site/1042",
		},
		"a person has to upgrade": {
			storage: v1alpha1.StoragePostgres,
			found:   findings{accepted: holds, storageReady: &postgresReady, schemaReady: &newerSchema},
			want: map[string]string{
				"Ready": "False NewerSchema", "Reconciling": "False NewerSchema", "Stalled": "True NewerSchema",
				"Accepted": "True Accepted", "StorageReady": "True PostgresStorage", "SchemaReady": "False NewerSchema",
			},
			url: "https://fhir.example.org/site/1042",
		},
		"exposed": {
			asks:  asks,
			found: findings{accepted: holds, storageReady: stored, siteKey: "key", exposed: exposed, url: "https://oak.example.org/site/1042"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "False Serving", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage", "Exposed": "True Exposed",
			},
			url: "https://oak.example.org/site/1042", siteKey: "key",
		},
		"not exposed": {
			asks:  asks,
			found: findings{accepted: holds, storageReady: stored, siteKey: "key", exposed: barred, url: "https://fhir.example.org/site/1042"},
			want: map[string]string{
				"Ready": "False HostNotAllowed", "Reconciling": "False HostNotAllowed", "Stalled": "True HostNotAllowed",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage", "Exposed": "False HostNotAllowed",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
		"not exposed yet, and without storage": {
			asks:  asks,
			found: findings{accepted: holds, storageReady: haunted, exposed: routing, url: "https://oak.example.org/site/1042"},
			want: map[string]string{
				"Ready": "False ForeignRecords", "Reconciling": "False ForeignRecords", "Stalled": "True ForeignRecords",
				"Accepted": "True Accepted", "StorageReady": "False ForeignRecords", "Exposed": "False RoutePending",
			},
			url: "https://oak.example.org/site/1042",
		},
		"waiting for a Gateway": {
			asks:  asks,
			found: findings{accepted: holds, storageReady: stored, siteKey: "key", exposed: routing, url: "https://oak.example.org/site/1042"},
			want: map[string]string{
				"Ready": "False RoutePending", "Reconciling": "True RoutePending", "Stalled": "False RoutePending",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage", "Exposed": "False RoutePending",
			},
			url: "https://oak.example.org/site/1042", siteKey: "key",
		},
		"failed while exposed": {
			before: shown, asks: asks,
			found: findings{accepted: holds, storageReady: stored, siteKey: "key", failed: "exposing failed"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "True Retrying", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage", "Exposed": "True Exposed",
			},
			url: "https://oak.example.org/site/1042", siteKey: "key",
		},
		"no longer exposed": {
			before: shown,
			found:  findings{accepted: holds, storageReady: stored, siteKey: "key", url: "https://fhir.example.org/site/1042"},
			want: map[string]string{
				"Ready": "True Serving", "Reconciling": "False Serving", "Stalled": "False Serving",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
		"deleting": {
			before: serving,
			found:  findings{deleting: true},
			want: map[string]string{
				"Ready": "False Deleting", "Reconciling": "True Deleting", "Stalled": "False Deleting",
				"Accepted": "True Accepted", "StorageReady": "True ClusterStorage",
			},
			url: "https://fhir.example.org/site/1042", siteKey: "key",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := oak.DeepCopy()
			s.Generation = 7
			s.Spec.Storage.Type, s.Spec.Exposure = tt.storage, tt.asks
			s.Status = tt.before
			status := statusOf(s, tt.found, "https://fhir.example.org", later)
			got := map[string]string{}
			for _, c := range status.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
				if c.ObservedGeneration != 7 {
					t.Errorf("%s speaks of generation %d, want 7", c.Type, c.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			want := v1alpha1.SiteStatus{ObservedGeneration: 7, SiteID: "1042", URL: tt.url, SiteKey: tt.siteKey}
			status.Conditions = nil
			if diff := cmp.Diff(want, status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfIsStable(t *testing.T) {
	found := findings{accepted: holds, storageReady: stored, siteKey: "key"}
	s := oak.DeepCopy()
	s.Status = statusOf(s, found, "https://fhir.example.org", earlier)
	again := statusOf(s, found, "https://fhir.example.org", later)
	if diff := cmp.Diff(s.Status, again); diff != "" {
		t.Errorf("the same findings made another status (-first +second):\n%s", diff)
	}

	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStorageNearLimit})
	if diff := cmp.Diff(again, own(s.Status)); diff != "" {
		t.Errorf("a condition of the API servers is not the controller's (-want +got):\n%s", diff)
	}
}

func TestTransitionTime(t *testing.T) {
	s := oak.DeepCopy()
	s.Status = statusOf(s, findings{accepted: holds, storageReady: stored, siteKey: "key"}, "", earlier)
	for _, c := range statusOf(s, findings{accepted: holds, storageReady: haunted}, "", later).Conditions {
		changed := c.Type != v1alpha1.ConditionAccepted && c.Type != v1alpha1.ConditionReconciling
		want := earlier
		if changed {
			want = later.Truncate(time.Second)
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s changed at %s, want %s", c.Type, c.LastTransitionTime.Time, want)
		}
	}
}
