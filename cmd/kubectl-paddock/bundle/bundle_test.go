package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"the secret whsec_YmFzZTY0+/= is wrong":              "the secret REDACTED is wrong",
		"whsk_abc":                                           "REDACTED",
		"token eyJhbGciOi.eyJzdWIi.c2ln-_x.":                 "token REDACTED.",
		"Authorization: Bearer abc.def":                      "Authorization: REDACTED",
		"dial postgres://oak:pass%20word@db:5432/oak failed": "dial postgres://REDACTED@db:5432/oak failed",
		"a: |\n  -----BEGIN PRIVATE KEY-----\n  MIIE\n  -----END PRIVATE KEY-----\nb": "a: |\n  REDACTED\nb",
		"1600 of 2000 records":     "1600 of 2000 records",
		"https://example.org/hook": "https://example.org/hook",
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.example.org:8443/services/T0/B0/secret?token=x": "https://hooks.example.org:8443",
		"https://user:secret@example.org/":                             "https://example.org", "secret": redacted, "https://exa mple/%zz": redacted,
	} {
		if got := Origin(address); got != want {
			t.Errorf("Origin(%q) = %q, want %q", address, got, want)
		}
	}
}

// seeded marks values that must not be selected.
const seeded = "Seeded"

func TestSelectionsOmitWhatCanHaveSecretsOrRecords(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "oak", Name: "kept", Annotations: map[string]string{"note": seeded, "paddock.health/paused": "kept"}, Labels: map[string]string{"x": seeded},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: seeded}},
	}
	site := &v1alpha1.Site{ObjectMeta: meta}
	site.Spec.Access.Issuers = []v1alpha1.Issuer{{Name: "kept", URL: "https://kept.example.org", JWKS: seeded, DiscoveryURL: "https://kept.example.org/x?key=" + seeded}}
	hook := &v1alpha1.Webhook{ObjectMeta: meta}
	hook.Spec.URL, hook.Spec.Description, hook.Spec.Fields = "https://kept.example.org/"+seeded+"?"+seeded, seeded, []string{seeded}
	hook.Spec.CABundle = []byte(seeded)
	pod := &corev1.Pod{ObjectMeta: meta}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "kept:1", Env: []corev1.EnvVar{{Name: "A", Value: seeded}}, Args: []string{seeded}, Command: []string{seeded}}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "kept", Message: seeded, ExitCode: 3}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: ended, LastTerminationState: ended, RestartCount: 4}}
	for name, selected := range map[string]any{"site": Site(site), "webhook": SelectWebhook(hook), "pod": SelectPod(pod)} {
		text, err := yaml.Marshal(selected)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), seeded) || !strings.Contains(string(text), "kept") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if site.Spec.Access.Issuers[0].JWKS != seeded {
		t.Error("the given Site was changed")
	}
}

func TestSelectEvent(t *testing.T) {
	pods := map[string]bool{"oak/paddock-postgres-0": true}
	for name, test := range map[string]struct {
		about corev1.ObjectReference
		want  bool
	}{
		"a Site":              {corev1.ObjectReference{APIVersion: "paddock.health/v1alpha1", Kind: "Site", Name: "oak"}, true},
		"a Webhook":           {corev1.ObjectReference{APIVersion: "paddock.health/v1alpha1", Kind: "Webhook", Name: "hook"}, true},
		"a record":            {corev1.ObjectReference{APIVersion: "records.paddock.health/v1alpha1", Kind: "Record", Name: "rex"}, false},
		"a patient":           {corev1.ObjectReference{APIVersion: "r4.fhir.paddock.health/v1alpha1", Kind: "Patient", Name: "rex"}, false},
		"a kind of others":    {corev1.ObjectReference{APIVersion: "example.org/v1", Kind: "Site", Name: "oak"}, false},
		"a Pod of the report": {corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "oak", Name: "paddock-postgres-0"}, true},
		"a Pod of others":     {corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "oak", Name: "app"}, false},
		"the database":        {corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "paddock-postgres"}, true},
		"the second database": {corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "paddock-postgres-b"}, true},
		"its Secret":          {corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "paddock-postgres"}, false},
	} {
		if _, ok := SelectEvent(&corev1.Event{InvolvedObject: test.about}, pods); ok != test.want {
			t.Errorf("%s: %v, want %v", name, ok, test.want)
		}
	}
}

// TestSelectEventMessage checks that a bundle has the messages of Events, except the free text of callers.
func TestSelectEventMessage(t *testing.T) {
	for reason, want := range map[string]string{"StorageReady": "text", "BrokenGlass": ""} {
		event := &corev1.Event{InvolvedObject: corev1.ObjectReference{APIVersion: "paddock.health/v1alpha1", Kind: "Site", Name: "oak"}, Reason: reason, Message: "text"}
		if got, ok := SelectEvent(event, nil); !ok || got.Reason != reason || got.Message != want {
			t.Errorf("%s: %+v, %v; want the message %q", reason, got, ok, want)
		}
	}
}

func TestWrite(t *testing.T) {
	var out bytes.Buffer
	at := time.Date(2031, 3, 1, 8, 30, 0, 0, time.UTC)
	err := Write(&out, "report", at, []File{{"a.yaml", map[string]string{"token": "whsec_abc"}}, {"b/c.yaml", []int{1}}})
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil || header.Mode != 0o600 || !header.ModTime.Equal(at) {
			t.Errorf("%s: mode %o, time %s, error %v", header.Name, header.Mode, header.ModTime, err)
		}
		got[header.Name] = string(text)
	}
	if diff := cmp.Diff(map[string]string{"report/a.yaml": "token: REDACTED\n", "report/b/c.yaml": "- 1\n"}, got); diff != "" {
		t.Error(diff)
	}
}
