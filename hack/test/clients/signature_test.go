package clients_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestVerifyWithoutLibrary holds the function of docs/guides/webhooks.md that verifies signatures by
// Python's standard library to the library of Standard Webhooks.
func TestVerifyWithoutLibrary(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, function, found := strings.Cut(string(guide), "```python\nimport base64")
	function, _, closed := strings.Cut(function, "```\n")
	if !found || !closed {
		t.Fatal("docs/guides/webhooks.md has no block of Python that begins with import base64")
	}
	const secret, id, body = "whsec_YmFzZTY0IG9mIDMyIHJhbmRvbSBieXRlcw==", "evt-1", `{"name": "Müller"}`
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, test := range map[string]struct {
		at   time.Time
		body string
		want string
	}{
		"valid":       {now, body, "True"},
		"old":         {now.Add(-time.Hour), body, "False"},
		"other bytes": {now, body + " ", "False"},
	} {
		t.Run(name, func(t *testing.T) {
			signature, err := signer.Sign(id, test.at, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			program := "import base64" + function + `
import sys
secret, id, timestamp, signature, body = sys.argv[1:]
print(is_valid(secret, {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": "v1a,x " + signature}, body.encode()))
`
			got, err := exec.CommandContext(t.Context(), "python3", "-c", program, secret, id, strconv.FormatInt(test.at.Unix(), 10), signature, test.body).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			if strings.TrimSpace(string(got)) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
