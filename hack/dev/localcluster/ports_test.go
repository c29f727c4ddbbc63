package localcluster

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChoosePorts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	first, err := choosePorts(t.Context(), file, portSet{})
	if err != nil {
		t.Fatal(err)
	}
	if first.APIServer == first.EtcdClient || first.EtcdClient == first.EtcdPeer || first.APIServer == first.EtcdPeer {
		t.Fatalf("ports %+v are not three", first)
	}

	second, err := choosePorts(t.Context(), file, portSet{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("ports of the second start (-first +second):\n%s", diff)
	}

	other, err := choosePorts(t.Context(), filepath.Join(t.TempDir(), "ports.json"), portSet{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := portSet{APIServer: other.APIServer}
	third, err := choosePorts(t.Context(), file, wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := portSet{APIServer: other.APIServer, EtcdClient: first.EtcdClient, EtcdPeer: first.EtcdPeer}
	if diff := cmp.Diff(want, third); diff != "" {
		t.Errorf("ports with one asked for (-want +got):\n%s", diff)
	}
}

func TestChoosePortsWaitsForOneThatIsTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	ports, err := choosePorts(t.Context(), file, portSet{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := listen(ports.EtcdPeer)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	if _, err := choosePorts(ctx, file, portSet{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("choosing a taken port: %v, want %v", err, syscall.EADDRINUSE)
	}

	time.AfterFunc(3*pollInterval, func() { _ = listener.Close() })
	if _, err := choosePorts(t.Context(), file, portSet{}); err != nil {
		t.Errorf("choosing a port that becomes free: %v", err)
	}
}
