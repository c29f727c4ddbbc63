package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

func TestStateOf(t *testing.T) {
	site := &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: "oak", Name: "oak"}}
	site.Spec.Storage = v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &v1alpha1.PostgresStorage{Provisioned: &v1alpha1.ProvisionedPostgres{Engine: "StatefulSet"}}}
	pending, at := int64(4), metav1.Now()
	failing := v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "oak"}, Status: v1alpha1.WebhookStatus{Pending: &pending, FailingSince: &at}}
	disabled := *failing.DeepCopy()
	disabled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, LastTransitionTime: at}}
	elsewhere := *failing.DeepCopy()
	elsewhere.Namespace = "elm"

	got := stateOf(site, []v1alpha1.Webhook{failing, disabled, elsewhere, {ObjectMeta: metav1.ObjectMeta{Namespace: "oak"}}})
	want := siteState{Namespace: "oak", Name: "oak", SiteID: "oak", Storage: "Postgres/StatefulSet", Ready: "Unknown", Deliveries: &deliveryState{Webhooks: 3, Failing: 1, Disabled: 1, Pending: 8}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	site.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Serving"},
		{Type: v1alpha1.ConditionStorageNearLimit, Status: metav1.ConditionTrue, Message: "1600 of 2000 records"},
	}
	if got := stateOf(site, nil); got.Ready != "True" || got.Reason != "Serving" || got.NearLimit != "1600 of 2000 records" || got.Deliveries != nil {
		t.Errorf("%+v", got)
	}
}

func TestStatusTableLevels(t *testing.T) {
	for name, test := range map[string]struct {
		state siteState
		want  output.Level
	}{
		"ready":     {siteState{Ready: "True", Deliveries: &deliveryState{Pending: 3}}, output.Normal},
		"not ready": {siteState{Ready: "False", NearLimit: "near"}, output.Failure},
		"unknown":   {siteState{Ready: "Unknown"}, output.Failure},
		"near":      {siteState{Ready: "True", NearLimit: "near"}, output.Warning},
		"failing":   {siteState{Ready: "True", Deliveries: &deliveryState{Failing: 1}}, output.Warning},
		"disabled":  {siteState{Ready: "True", Deliveries: &deliveryState{Disabled: 1}}, output.Warning},
	} {
		table := statusTable([]siteState{test.state})
		if got := table.Rows[0].Level; got != test.want {
			t.Errorf("%s: level %d, want %d", name, got, test.want)
		}
		if len(table.Rows[0].Cells) != len(table.Columns) {
			t.Errorf("%s: %d cells, %d columns", name, len(table.Rows[0].Cells), len(table.Columns))
		}
	}
}

func TestMondayOf(t *testing.T) {
	zone, err := time.LoadLocation("Australia/Melbourne")
	if err != nil {
		t.Fatal(err)
	}
	// Daylight saving time ends on Sunday, 6 April 2031.
	for day, want := range map[string]string{
		"2031-03-31": "2031-03-31T00:00:00+11:00", "2031-04-06": "2031-03-31T00:00:00+11:00", "2031-04-07": "2031-04-07T00:00:00+10:00", "2031-01-01": "2030-12-30T00:00:00+11:00",
	} {
		at, err := time.ParseInLocation(time.DateOnly, day, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := mondayOf(at.Add(23 * time.Hour)).Format(time.RFC3339); got != want {
			t.Errorf("mondayOf(%s) = %s, want %s", day, got, want)
		}
	}
}

func TestWeekTable(t *testing.T) {
	zone := time.FixedZone("", 5*3600+45*60)
	monday := time.Date(2031, 3, 3, 0, 0, 0, 0, zone)
	now := monday.Add(time.Hour)
	var found []json.RawMessage
	for _, text := range []string{
		`{"resourceId":"b","startAt":"2031-03-03T03:15:00Z","endAt":"2031-03-03T03:45:00Z","isActive":true,"isBooked":false,"heldUntil":null}`,
		`{"resourceId":"a","startAt":"2031-03-09T09:00:00+05:45","endAt":"2031-03-09T09:30:00+05:45","isActive":true,"isBooked":true}`,
		`{"resourceId":"b","startAt":"2031-03-04T09:00:00+05:45","endAt":"2031-03-04T09:30:00+05:45","isActive":true,"heldUntil":"2031-03-03T01:00:01+05:45"}`,
		`{"resourceId":"b","startAt":"2031-03-04T09:00:00+05:45","endAt":"2031-03-04T09:30:00+05:45","isActive":true,"heldUntil":"2031-03-03T01:00:00+05:45"}`,
		`{"resourceId":"b","startAt":"2031-03-05T23:00:00+05:45","endAt":"2031-03-06T01:00:00+05:45","isActive":false,"isBooked":true}`,
	} {
		found = append(found, json.RawMessage(text))
	}
	slots, err := decodeSlots(found)
	if err != nil {
		t.Fatal(err)
	}
	want := output.Table{
		Columns: []string{"Resource", "Time", "Mon 03", "Tue 04", "Wed 05", "Thu 06", "Fri 07", "Sat 08", "Sun 09"},
		Rows: []output.Row{
			{Cells: []string{"a", "09:00-09:30", "-", "-", "-", "-", "-", "-", "booked"}},
			{Cells: []string{"b", "09:00-09:30", "free", "held,free", "-", "-", "-", "-", "-"}},
			{Cells: []string{"b", "23:00-2031-03-06 01:00", "-", "-", "inactive", "-", "-", "-", "-"}},
		},
	}
	if diff := cmp.Diff(want, weekTable(slots, monday, now)); diff != "" {
		t.Error(diff)
	}
	if _, err := decodeSlots([]json.RawMessage{json.RawMessage(`{"startAt":"soon"}`)}); err == nil {
		t.Error("a slot without a valid time was read")
	}
}

// TestWeekTableWithoutMidnight checks the names of days in a week in which the clocks skip a midnight.
func TestWeekTableWithoutMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	// Sunday, 4 November 2018 began at 01:00.
	got := weekTable(nil, time.Date(2018, 10, 29, 0, 0, 0, 0, zone), time.Time{}).Columns[2:]
	if diff := cmp.Diff([]string{"Mon 29", "Tue 30", "Wed 31", "Thu 01", "Fri 02", "Sat 03", "Sun 04"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWebhookStateOf(t *testing.T) {
	at := metav1.Now()
	hook := func(change func(*v1alpha1.Webhook)) *v1alpha1.Webhook {
		h := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "oak", Name: "hook"}}
		h.Status.Conditions = []metav1.Condition{{Type: "Active", Status: metav1.ConditionTrue, Reason: "Active"}}
		change(h)
		return h
	}
	for want, h := range map[string]*v1alpha1.Webhook{
		"Active":  hook(func(*v1alpha1.Webhook) {}),
		"Pending": hook(func(h *v1alpha1.Webhook) { h.Status.Conditions = nil }),
		"Failing": hook(func(h *v1alpha1.Webhook) { h.Status.FailingSince = &at }),
		"TypeDisabled": hook(func(h *v1alpha1.Webhook) {
			h.Status.Conditions[0].Status, h.Status.Conditions[0].Reason = metav1.ConditionFalse, "TypeDisabled"
		}),
		"Disabled": hook(func(h *v1alpha1.Webhook) {
			h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, LastTransitionTime: at})
		}),
	} {
		if got := webhookStateOf(h); got.State != want {
			t.Errorf("state %s, want %s", got.State, want)
		}
	}
}

func TestWebhookID(t *testing.T) {
	site := &v1alpha1.Site{ObjectMeta: metav1.ObjectMeta{Namespace: "oak"}}
	if got := webhookID(site, "0198C4F2-7D1E-7C3A-9B5F-00000000F001"); got != "0198c4f2-7d1e-7c3a-9b5f-00000000f001" {
		t.Errorf("the id of a UUID is %s", got)
	}
	if got, want := webhookID(site, "hook"), v1alpha1.ResourceID("webhooks", "oak", "hook"); got != want {
		t.Errorf("the id of a name is %s, want %s", got, want)
	}
}

func TestFailure(t *testing.T) {
	failed := []attempt{{Reason: "status", Message: "500 Internal Server Error", Status: 500}}
	for want, d := range map[string]delivery{
		"": {Status: "delivered"},
		"delivery d: there was no attempt within 1s; `webhooks tail` shows later attempts":                {DeliveryID: "d", Status: "pending"},
		"delivery d is undelivered without an attempt; check that the Webhook is active and not disabled": {DeliveryID: "d", Status: "undelivered"},
		"delivery d: the receiver did not accept the event (status): 500 Internal Server Error":           {DeliveryID: "d", Status: "pending", Attempts: failed},
	} {
		got := ""
		if err := d.failure(time.Second); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
	if err := (delivery{Status: "pending"}).failure(0); err != nil {
		t.Errorf("without waiting: %v", err)
	}
}

// TestTailBegin checks that deliveries that are older than those of --lines are not printed later, unless
// their state changes, and that those that follow are.
func TestTailBegin(t *testing.T) {
	at := func(second int) *time.Time {
		at := time.Date(2031, 3, 1, 8, 0, second, 0, time.UTC)
		return &at
	}
	older, last := delivery{DeliveryID: "older", Status: "pending", AcceptedAt: at(1)}, delivery{DeliveryID: "last", Status: "pending", AcceptedAt: at(2)}
	next, ended := delivery{DeliveryID: "next", Status: "pending", AcceptedAt: at(3)}, older
	ended.Status = "delivered"
	for name, test := range map[string]struct {
		lines int
		want  string
	}{
		"one line": {1, "last pending, next pending, older delivered"}, "no line": {0, "next pending, older delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			lists := [][]delivery{{last}, {next, last, older}, {next, last, ended}} // next is accepted after the first request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]any{"data": lists[0], "meta": map[string]int{"totalPages": 1}})
				lists = lists[1:]
			}))
			defer server.Close()
			api, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			shown := &tail{app: &app{Options: Options{Streams: genericiooptions.IOStreams{Out: &out}}}, site: &openSite{api: api}, json: true, seen: map[string]string{}}
			if err := shown.begin(t.Context(), test.lines); err != nil {
				t.Fatal(err)
			}
			found, err := shown.list(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := shown.print(found); err != nil {
				t.Fatal(err)
			}
			var got []string
			for lines := json.NewDecoder(&out); lines.More(); {
				var d delivery
				if err := lines.Decode(&d); err != nil {
					t.Fatal(err)
				}
				got = append(got, d.DeliveryID+" "+d.Status)
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("printed %s; want %s", got, test.want)
			}
		})
	}
}

func TestStorageName(t *testing.T) {
	postgres := func(p v1alpha1.PostgresStorage) v1alpha1.Storage {
		return v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: &p}
	}
	for want, storage := range map[string]v1alpha1.Storage{
		"Cluster":              {Type: v1alpha1.StorageCluster},
		"Postgres/external":    postgres(v1alpha1.PostgresStorage{External: &v1alpha1.ExternalPostgres{}}),
		"Postgres/StatefulSet": postgres(v1alpha1.PostgresStorage{Provisioned: &v1alpha1.ProvisionedPostgres{Engine: v1alpha1.EngineStatefulSet}}),
		"Postgres/pool":        postgres(v1alpha1.PostgresStorage{Pool: &v1alpha1.PooledPostgres{}}),
	} {
		if got := storageName(&v1alpha1.Site{Spec: v1alpha1.SiteSpec{Storage: storage}}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
