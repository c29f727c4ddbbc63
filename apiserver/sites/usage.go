package sites

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// nearLimit returns the condition for a Site's usage. It becomes true at 80 % of a limit, and false
// again below 75 %, so that it does not flap. A Site that never reached 80 % has no condition.
// The result is nil if the condition must stay as it is.
func nearLimit(stats store.Stats, current *metav1.Condition) *metav1.Condition {
	if stats.Counted.IsZero() {
		return nil
	}
	share := max(percent(stats.Records, stats.MaxRecords), percent(stats.Bytes, stats.MaxBytes))
	isNear := current != nil && current.Status == metav1.ConditionTrue
	message := fmt.Sprintf("The Site stores %d of %d records and %d of %d bytes.", stats.Records, stats.MaxRecords, stats.Bytes, stats.MaxBytes)
	switch {
	case share >= 80 || isNear && share >= 75:
		return &metav1.Condition{
			Type: sitesv1.ConditionStorageNearLimit, Status: metav1.ConditionTrue, Reason: "NearLimit",
			Message: message + " At a limit, writes that need more room are refused, and deletes are not. To store more, raise maxRecords or maxSize in spec.storage.cluster.",
		}
	case current != nil:
		return &metav1.Condition{
			Type: sitesv1.ConditionStorageNearLimit, Status: metav1.ConditionFalse, Reason: "WithinLimit", Message: message,
		}
	default:
		return nil
	}
}

func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}
