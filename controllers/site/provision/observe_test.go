package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func podOf(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: PodName(Name)}}
	if err := yaml.UnmarshalStrict([]byte(status), &pod.Status); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestObserveStatefulSet(t *testing.T) {
	seen := &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{ObservedGeneration: 1}}
	leaving := podOf(t, `conditions: [{type: Ready, status: "True"}]`)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	tests := map[string]struct {
		objects Objects
		want    State
	}{
		"nothing yet": {Objects{}, State{false, v1alpha1.ReasonProvisioning, "The database is being created."}},
		"a StatefulSet that its controller has not seen": {
			Objects{StatefulSet: &appsv1.StatefulSet{}},
			State{false, v1alpha1.ReasonProvisioning, "The database is being created."},
		},
		"no Pod, for lack of quota": {
			Objects{StatefulSet: seen},
			State{false, v1alpha1.ReasonProvisioning, "StatefulSet paddock-postgres has no Pod yet. If this persists, see its events."},
		},
		"no node": {
			Objects{StatefulSet: seen, Pod: podOf(t, `conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]`)},
			State{false, v1alpha1.ReasonPodPending, "Pod paddock-postgres-0 cannot be scheduled: 0/3 nodes are available"},
		},
		"on a node": {
			Objects{StatefulSet: seen, Pod: podOf(t, `conditions: [{type: PodScheduled, status: "True"}]`)},
			State{false, v1alpha1.ReasonProvisioning, "Pod paddock-postgres-0 is being set up."},
		},
		"its volume is being mounted": {
			Objects{StatefulSet: seen, Pod: podOf(t, `containerStatuses: [{name: postgres, state: {waiting: {reason: ContainerCreating}}}]`)},
			State{false, v1alpha1.ReasonProvisioning, "Pod paddock-postgres-0 is being set up. If this persists, see its events."},
		},
		"no image": {
			Objects{StatefulSet: seen, Pod: podOf(t, `containerStatuses: [{name: postgres, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}]`)},
			State{false, v1alpha1.ReasonUnavailable, "Pod paddock-postgres-0 does not run: ImagePullBackOff: Back-off pulling image"},
		},
		"it crashes": {
			Objects{StatefulSet: seen, Pod: podOf(t, `containerStatuses: [{name: postgres, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}},
				lastState: {terminated: {exitCode: 1, message: "FATAL: something private"}}}]`)},
			State{false, v1alpha1.ReasonUnavailable, "Pod paddock-postgres-0 does not run: CrashLoopBackOff. It last ended with exit code 1 and was restarted 4 times. See its log."},
		},
		"it starts": {
			Objects{StatefulSet: seen, Pod: podOf(t, `{conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: postgres, state: {running: {}}}]}`)},
			State{false, v1alpha1.ReasonUnavailable, "Pod paddock-postgres-0 runs, but Postgres accepts no connections yet. It may be starting, or replaying its log after a crash. If this persists, see the log of the Pod."},
		},
		"its volume is lost": {
			Objects{StatefulSet: seen, Volume: &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}}},
			State{false, v1alpha1.ReasonVolumeLost, "The volume of PersistentVolumeClaim paddock-postgres no longer exists. Restore the volume, or delete the PersistentVolumeClaim to start with an empty database."},
		},
		"ready": {Objects{StatefulSet: seen, Pod: podOf(t, `conditions: [{type: Ready, status: "True"}]`)}, State{Up: true}},
		"being replaced": {
			Objects{StatefulSet: seen, Pod: leaving},
			State{false, v1alpha1.ReasonProvisioning, "Pod paddock-postgres-0 is being replaced."},
		},
	}
	site := readSite(t, "testdata/statefulset-defaults.in.yaml")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Observe(site, tt.objects)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserveCloudNativePG(t *testing.T) {
	tests := map[string]struct {
		status string
		want   State
	}{
		"no operator": {
			`{}`,
			State{false, v1alpha1.ReasonProvisioning, "CloudNativePG has not processed Cluster paddock-postgres yet. If this persists, check that its operator runs."},
		},
		"the first instance": {
			`{phase: Setting up primary, phaseReason: Creating primary instance}`,
			State{false, v1alpha1.ReasonProvisioning, "CloudNativePG reports: Setting up primary: Creating primary instance"},
		},
		"one of three": {`{readyInstances: 1, currentPrimary: paddock-postgres-1, phase: Creating a new replica}`, State{Up: true}},
		"none left": {
			`{currentPrimary: paddock-postgres-1, phase: Not enough disk space}`,
			State{false, v1alpha1.ReasonUnavailable, "No instance is ready. CloudNativePG reports: Not enough disk space"},
		},
	}
	site := readSite(t, "testdata/cnpg-defaults.in.yaml")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte(`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, status: ` + tt.status + `}`))
			if err != nil {
				t.Fatal(err)
			}
			cluster := &unstructured.Unstructured{}
			if err := cluster.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, Observe(site, Objects{Cluster: cluster})); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
	if got := Observe(site, Objects{}); got.Up || got.Reason != v1alpha1.ReasonProvisioning {
		t.Errorf("without a Cluster: got %+v", got)
	}
}
