package commands

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// run runs a command without a cluster and returns its exit code and output.
func run(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, Options{
		Name: "kubectl paddock", Version: "v1.2.3", Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr},
	})
	return code, stdout.String(), stderr.String()
}

func TestInvalidInput(t *testing.T) {
	t.Setenv(tokenVariable, "")
	for line, want := range map[string]string{
		"bogus":          `unknown command "bogus"; the commands are audit, `,
		"webhooks bogus": `unknown command "bogus"; the commands are list, `,
		"status --bogus": "unknown flag: --bogus",
		"status a b":     `unexpected argument "b"; expected: kubectl paddock status [SITE]`,
		"status demo -A": `the argument "demo" and --all-namespaces exclude each other; omit one of them`,
		"status -o wide": `--output: "wide" is not a format; use table, json, yaml`,
		"token":          "the argument SITE is missing; expected: kubectl paddock token SITE",
		"token demo":     "--as-service-account is required",
		"token demo --as-service-account e --duration 5m": "--duration: 5m0s is too short; the minimum is 10m0s",
		"token demo --as-service-account e --duration x":  `invalid argument "x" for "--duration"`,
		"token demo --as-service-account e --renew":       "--renew needs --file",
		"slots demo": "there is no token; set --as-service-account, --token-file or $PADDOCK_TOKEN",
		"slots demo --token-file t --as-service-account e":                                      "--as-service-account and --token-file exclude each other; set only one of them",
		"slots demo --token-file t --week tuesday":                                              `--week: "tuesday" is not a date, such as 2031-03-03`,
		"slots demo --token-file t --server paddock":                                            `--server: "paddock" is not an http or https URL`,
		"audit demo --token-file t --limit 0":                                                   "--limit: 0 is not between 1 and 1000",
		"audit demo --token-file t --from yesterday":                                            `--from: "yesterday" is not a time in RFC 3339`,
		"export demo --token-file t":                                                            "--directory is required",
		"import demo --token-file t":                                                            "--directory is required",
		"import --directory d":                                                                  "the argument SITE is missing",
		"import demo --directory d":                                                             "there is no token",
		"export demo --token-file t --directory d --since yesterday":                            `--since: "yesterday" is not a time in RFC 3339`,
		"restore demo --token-file t --directory d --from backups/oak":                          `--from: "backups/oak" is not an address of backups; it must have the form s3://bucket/path`,
		"restore demo --token-file t --directory d --from s3://backups":                         `--from: "s3://backups" is not an address of backups`,
		"restore demo --token-file t --directory d --from s3://backups/oak --s3-endpoint minio": `--s3-endpoint: "minio" is not an endpoint of S3; it must have the form https://host:port`,
		"report a b":         `unexpected argument "b"`,
		"webhooks list":      "the argument SITE is missing",
		"webhooks test demo": "the argument WEBHOOK is missing",
		"webhooks test demo hook --token-file t --wait -1s":                                              "--wait: -1s is negative",
		"webhooks tail demo hook --token-file t --lines 101":                                             "--lines: 101 is not between 0 and 100",
		"webhooks tail demo hook --token-file t -o yaml":                                                 "--output: tail does not support yaml; use table or json",
		"webhooks redeliver demo hook --token-file t":                                                    `DELIVERY: "hook" is not the id of a delivery, a UUID`,
		"webhooks replay demo hook --token-file t":                                                       "--from is required",
		"webhooks replay demo hook --token-file t --from 2031-03-01T00:00:00Z --to 2031-02-01T00:00:00Z": "--to: 2031-02-01T00:00:00Z is not after --from",
		"webhooks replay demo hook --token-file t --from 2031-03-01T00:00:00Z --status pending":          `--status: "pending" is not one of delivered, failed, undelivered`,
		"webhooks listen demo hook --token-file t":                                                       "--forward-to is required",
		"webhooks listen demo hook --token-file t --forward-to localhost:3000":                           `--forward-to: "localhost:3000" is not an http or https URL`,
		"webhooks listen demo hook --token-file t --forward-to http://localhost --secret whsec_x":        "--secret or $PADDOCK_LISTEN_SECRET: a shared signing secret must have 24 to 64 bytes",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, said := run(t, strings.Fields(line)...)
			if code != exitUsage || out != "" || !strings.HasPrefix(said, "error: "+want) || !strings.Contains(said, "See kubectl paddock") {
				t.Errorf("code %d, stdout %q, stderr %q; want code 2, error: %s", code, out, said, want)
			}
		})
	}
}

func TestWithoutCluster(t *testing.T) {
	t.Setenv("PADDOCK_TOKEN", "token")
	for _, line := range []string{"status", "report", "slots demo", "audit demo", "webhooks list demo", "export demo --directory d", "import demo --directory d", "token demo --as-service-account e"} {
		if code, _, said := run(t, strings.Fields(line)...); code != exitFailed || !strings.HasPrefix(said, "error: ") {
			t.Errorf("%s: code %d, stderr %q", line, code, said)
		}
	}
	if files, err := filepath.Glob("paddock-report-*"); err != nil || len(files) > 0 {
		t.Errorf("a failed report left %v, %v", files, err)
	}
}

// TestSiteNotAccepted checks that commands send no request for a Site that does not hold its siteID. The
// request would reach the Site that holds it.
func TestSiteNotAccepted(t *testing.T) {
	requests := 0
	holder := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer holder.Close()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"paddock.health/v1alpha1","kind":"Site","metadata":{"name":"oak","namespace":"former"},
			"spec":{"sandbox":true,"timeZone":"Australia/Melbourne"},"status":{"conditions":[{"type":"Accepted","status":"False","reason":"Moved"}]}}`)
	}))
	defer cluster.Close()
	t.Setenv(tokenVariable, "token")
	for _, server := range []string{"", holder.URL} {
		code, _, said := run(t, "reset", "oak", "--server", server, "--kubeconfig", kubeconfig(t, cluster.URL))
		if want := `error: the Site former/oak is not accepted`; code != exitFailed || !strings.HasPrefix(said, want) || requests > 0 {
			t.Errorf("--server %q: code %d, stderr %q, %d requests; want %s", server, code, said, requests, want)
		}
	}
}

// kubeconfig writes a kubeconfig for a cluster and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHelpVersionAndCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"": "Exit codes: 0 done, 1 failed, 2 invalid", "--help": "kubectl paddock [command]", "--version": "v1.2.3\n", "webhooks": "Available Commands",
		"completion bash": "__start_kubectl-paddock", "__complete status -o ": "table\njson\nyaml\n",
	} {
		args := strings.Fields(line)
		if strings.HasSuffix(line, " ") {
			args = append(args, "")
		}
		if code, out, said := run(t, args...); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", line, code, out, said)
		}
	}
}

// TestCompletionByName checks that the completion is of the program by the name by which it runs.
func TestCompletionByName(t *testing.T) {
	for name, want := range map[string]string{"paddock": "__start_paddock paddock\n", "kubectl paddock": "__start_kubectl-paddock kubectl-paddock\n"} {
		var stdout bytes.Buffer
		code := Run(t.Context(), []string{"completion", "bash"}, Options{Name: name, Streams: genericiooptions.IOStreams{Out: &stdout, ErrOut: io.Discard}})
		if code != exitDone || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: code %d, the script lacks %q", name, code, want)
		}
	}
}

func TestReadToken(t *testing.T) {
	t.Setenv(tokenVariable, "")
	path := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{"abc\n": "abc", "": "", "two words": "", "two\nlines": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readToken(path); got != want || (err == nil) != (want != "") {
			t.Errorf("readToken of %q = %q, %v", text, got, err)
		}
	}
	t.Setenv(tokenVariable, "from-the-environment")
	if got, err := readToken(""); got != "from-the-environment" || err != nil {
		t.Errorf("readToken = %q, %v", got, err)
	}
}
