package site

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestDecideStorage(t *testing.T) {
	claim := siteClaimOf("1042", "clinic", "oak", "uid-oak")
	tests := map[string]struct {
		view   storageView
		status metav1.ConditionStatus
		reason string
	}{
		"no claim":         {storageView{}, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted},
		"foreign records":  {storageView{claim: claim, foreign: true}, metav1.ConditionFalse, v1alpha1.ReasonForeignRecords},
		"own records only": {storageView{claim: claim}, metav1.ConditionTrue, v1alpha1.ReasonClusterStorage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideStorage(tt.view)
			if got.status != tt.status || got.reason != tt.reason || got.message == "" {
				t.Errorf("got %+v, want %s %s and a message", got, tt.status, tt.reason)
			}
		})
	}
}

func TestStorageChecked(t *testing.T) {
	status := func(key string, ready metav1.ConditionStatus) v1alpha1.SiteStatus {
		return v1alpha1.SiteStatus{SiteKey: key, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionStorageReady, Status: ready},
		}}
	}
	tests := map[string]struct {
		status v1alpha1.SiteStatus
		want   bool
	}{
		"never":                 {v1alpha1.SiteStatus{}, false},
		"under this key":        {status("key", metav1.ConditionTrue), true},
		"under an earlier key":  {status("other", metav1.ConditionTrue), false},
		"and found wanting":     {status("key", metav1.ConditionFalse), false},
		"key without a verdict": {v1alpha1.SiteStatus{SiteKey: "key"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := storageChecked(&v1alpha1.Site{Status: tt.status}, "key"); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
