package commands

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestRenew renews tokens with a clock that only sleep moves.
func TestRenew(t *testing.T) {
	now := time.Date(2031, 3, 1, 8, 0, 0, 0, time.UTC)
	var stderr bytes.Buffer
	a := &app{Options: Options{Streams: genericiooptions.IOStreams{ErrOut: &stderr}}, now: func() time.Time { return now }}
	file := filepath.Join(t.TempDir(), "token")
	unavailable := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "editor", nil)
	answers := []error{nil, nil, unavailable, unavailable, nil, forbidden}
	var seen []string
	calls := 0
	issue := func(context.Context) (issuedToken, error) {
		text, _ := os.ReadFile(file) // none at first
		seen = append(seen, now.Format("15:04:05")+" "+strings.TrimSpace(string(text)))
		calls++
		return issuedToken{Token: "token-" + string(rune('0'+calls)), IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute)}, answers[calls-1]
	}
	err := a.renew(t.Context(), file, issue, func(_ context.Context, d time.Duration) { now = now.Add(d) })
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want that of the last request", err)
	}
	want := []string{"08:00:00 ", "08:08:00 token-1", "08:16:00 token-2", "08:16:01 token-2", "08:16:03 token-2", "08:24:03 token-5"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(stderr.String(), "token-1") || strings.Count(stderr.String(), "connection refused") != 2 {
		t.Errorf("stderr %s", stderr.String())
	}
}

func TestRenewEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &app{Options: Options{Streams: genericiooptions.IOStreams{ErrOut: &bytes.Buffer{}}}, now: time.Now}
	file := filepath.Join(t.TempDir(), "token")
	issue := func(ctx context.Context) (issuedToken, error) {
		return issuedToken{Token: "t", ExpiresAt: time.Now().Add(time.Hour)}, ctx.Err()
	}
	if err := a.renew(ctx, file, issue, func(context.Context, time.Duration) { cancel() }); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestFirstTokenMustBeIssued(t *testing.T) {
	a := &app{now: time.Now}
	unavailable := errors.New("connection refused")
	err := a.renew(t.Context(), filepath.Join(t.TempDir(), "token"), func(context.Context) (issuedToken, error) { return issuedToken{}, unavailable }, nil)
	if !errors.Is(err, unavailable) {
		t.Errorf("error %v", err)
	}
}

func TestWriteToken(t *testing.T) {
	dir := t.TempDir()
	if err := writeToken(filepath.Join(dir, "absent", "token"), issuedToken{}); err == nil || !strings.HasPrefix(err.Error(), "write --file: ") {
		t.Errorf("error %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeToken(filepath.Join(dir, "folder"), issuedToken{Token: "t"}); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".token-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files %v, %v", left, err)
	}
}

// TestKeepToken keeps a token that is still valid if it cannot be renewed.
func TestKeepToken(t *testing.T) {
	now := time.Date(2031, 3, 1, 8, 0, 0, 0, time.UTC)
	a := &app{now: func() time.Time { return now }}
	unavailable := errors.New("connection refused")
	var fails error
	issued := 0
	token := a.keepToken(func(context.Context) (issuedToken, error) {
		issued++
		return issuedToken{Token: "token-" + string(rune('0'+issued)), IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute)}, fails
	})
	for _, step := range []struct {
		pass  time.Duration
		fails error
		want  string
	}{
		{0, unavailable, ""},
		{0, nil, "token-2"},
		{7 * time.Minute, unavailable, "token-2"},
		{2 * time.Minute, unavailable, "token-2"},
		{0, nil, "token-4"},
		{9 * time.Minute, unavailable, "token-4"},
		{time.Minute, unavailable, ""},
	} {
		now, fails = now.Add(step.pass), step.fails
		got, err := token(t.Context())
		if got != step.want || (err != nil) != (step.want == "") {
			t.Errorf("at %s: got %q, %v, want %q", now.Format(time.TimeOnly), got, err, step.want)
		}
	}
}
