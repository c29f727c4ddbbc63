package localcluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPKIRenewal(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		later     time.Duration
		arrange   func(t *testing.T, dir string)
		keepsLeaf bool
		keepsCA   bool
	}{
		"next day":                     {later: day, keepsLeaf: true, keepsCA: true},
		"certificate near its end":     {later: leafLife - renewLeafBefore + day, keepsCA: true},
		"authority near its end":       {later: 10*365*day - renewCABefore + day},
		"key without its certificate":  {arrange: remove("apiserver.crt"), keepsCA: true},
		"certificate without its key":  {arrange: remove("apiserver.key"), keepsCA: true},
		"another authority since":      {arrange: remove("ca.crt")},
		"another certificate's key":    {arrange: replaceWith("admin.key", "apiserver.key"), keepsCA: true},
		"a certificate for other uses": {arrange: replacePair("admin", "apiserver"), keepsCA: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			before := mustEnsurePKI(t, dir, now)
			ca, leaf, tokens := read(t, before.cluster.certFile), read(t, before.serving.certFile), read(t, before.serviceAccountKey)
			if test.arrange != nil {
				test.arrange(t, dir)
			}

			after := mustEnsurePKI(t, dir, now.Add(test.later))

			if kept := bytes.Equal(ca, read(t, after.cluster.certFile)); kept != test.keepsCA {
				t.Errorf("authority kept: %t, want %t", kept, test.keepsCA)
			}
			if kept := bytes.Equal(leaf, read(t, after.serving.certFile)); kept != test.keepsLeaf {
				t.Errorf("certificate kept: %t, want %t", kept, test.keepsLeaf)
			}
			if !bytes.Equal(tokens, read(t, after.serviceAccountKey)) {
				t.Error("the key of the service account tokens changed")
			}
			expectValid(t, after, now.Add(test.later+day))
		})
	}
}

// expectValid checks the serving certificate as a client of kube-apiserver would.
func expectValid(t *testing.T, p pki, at time.Time) {
	t.Helper()
	serving, _, err := p.serving.load()
	if err != nil || serving == nil {
		t.Fatalf("load serving certificate: %v, %v", serving, err)
	}
	want := leaf{commonName: "kube-apiserver", usages: serverUsage, dnsNames: serving.DNSNames, ips: serving.IPAddresses}
	if !p.cluster.stands(serving, want, at) {
		t.Error("the serving certificate does not verify against the authority")
	}
	for _, name := range []string{host, "localhost"} {
		if err := serving.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestPKIRefusesWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	mustEnsurePKI(t, dir, time.Now())
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ensurePKI(dir, nil, time.Now()); err == nil {
		t.Error("a certificate authority that is not one was accepted")
	}
}

func mustEnsurePKI(t *testing.T, dir string, now time.Time) pki {
	t.Helper()
	p, err := ensurePKI(dir, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func replaceWith(from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, to), read(t, filepath.Join(dir, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func replacePair(from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		replaceWith(from+".crt", to+".crt")(t, dir)
		replaceWith(from+".key", to+".key")(t, dir)
	}
}
