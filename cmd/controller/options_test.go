package main

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/apiserver/egress"
)

func TestParseOptions(t *testing.T) {
	defaults := options{
		publicURL: "https://fhir.example.org", namespace: "paddock-system", connectionsNamespace: "paddock-connections", webhooksNamespace: "paddock-webhooks", leaderElect: true,
		metricsAddress: "127.0.0.1:8082", healthAddress: ":8081",
		webhookAddress: ":9443", webhookSecret: "paddock-controller-tls", secrets: "Cluster",
		postgresImage: "docker.io/library/postgres", cloudNativePGImage: "ghcr.io/cloudnative-pg/postgresql",
		exposure: exposureOptions{scheme: "https", facadePort: 80},
	}
	tests := map[string]struct {
		args []string
		want func(*options)
		err  string
	}{
		"defaults":         {args: []string{"--public-url", "https://fhir.example.org"}},
		"a trailing slash": {args: []string{"--public-url=https://fhir.example.org/"}},
		"a path": {
			args: []string{"--public-url=http://127.0.0.1:8080/clinics/"},
			want: func(o *options) { o.publicURL = "http://127.0.0.1:8080/clinics" },
		},
		"everything": {
			args: []string{
				"--public-url=https://fhir.example.org", "--namespace=ops", "--leader-elect=false",
				"--postgres-image=registry.example.org:5000/postgres", "--cloudnativepg-image=cnpg",
				"--metrics-address=0", "--health-address=127.0.0.1:1", "--log-level=debug",
				"--certificate-names=a.ops.svc,b.ops.svc",
				"--webhook-address=[::1]:443", "--webhook-secret=mine", "--webhook-certificate-names=c.ops.svc",
				"--secrets=Namespaced", "--page-token-secret=page-token", "--issuer-networks=10.0.0.0/8,fd00::/8",
				"--ingress-hosts=fhir.example.org,*.clinics.example.org", "--ingress-scheme=http", "--ingress-class=public",
				"--ingress-annotation=example.org/body-size=4m", "--ingress-annotation=example.org/rules=a=b,c",
				"--ingress-tls-secret=fhir-tls", "--gateways=infra/public,infra/partners", "--facade-port=8080",
			},
			want: func(o *options) {
				o.namespace, o.leaderElect, o.metricsAddress, o.healthAddress = "ops", false, "0", "127.0.0.1:1"
				o.logLevel = slog.LevelDebug
				o.certificateNames = []string{"a.ops.svc", "b.ops.svc"}
				o.secrets, o.pageTokenSecret = "Namespaced", "page-token"
				o.issuerNetworks = egress.Networks{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
				o.webhookAddress, o.webhookSecret, o.webhookNames = "[::1]:443", "mine", []string{"c.ops.svc"}
				o.postgresImage, o.cloudNativePGImage = "registry.example.org:5000/postgres", "cnpg"
				o.exposure = exposureOptions{
					hosts: []string{"fhir.example.org", "*.clinics.example.org"}, scheme: "http", class: "public", tlsSecret: "fhir-tls",
					annotations: map[string]string{"example.org/body-size": "4m", "example.org/rules": "a=b,c"},
					gateways:    []types.NamespacedName{{Namespace: "infra", Name: "public"}, {Namespace: "infra", Name: "partners"}}, facadePort: 8080,
				}
			},
		},
		"only --version": {
			args: []string{"--version"},
			want: func(o *options) { o.publicURL, o.showVersion = "", true },
		},
		"no public URL":         {args: nil, err: "--public-url"},
		"a URL with no scheme":  {args: []string{"--public-url=fhir.example.org"}, err: "--public-url"},
		"a query":               {args: []string{"--public-url=https://fhir.example.org?a=b"}, err: "--public-url"},
		"an empty query":        {args: []string{"--public-url=https://fhir.example.org?"}, err: "--public-url"},
		"an empty fragment":     {args: []string{"--public-url=https://fhir.example.org#"}, err: "--public-url"},
		"a user":                {args: []string{"--public-url=https://me@fhir.example.org"}, err: "--public-url"},
		"an image with a tag":   {args: []string{"--public-url=https://fhir.example.org", "--postgres-image=postgres:17"}, err: "--postgres-image"},
		"an image with no name": {args: []string{"--public-url=https://fhir.example.org", "--cloudnativepg-image=cnpg/"}, err: "--cloudnativepg-image"},
		"an invalid DNS name":   {args: []string{"--public-url=https://fhir.example.org", "--certificate-names=a.svc,"}, err: "certificate-names"},
		"no webhook": {
			args: []string{"--public-url=https://fhir.example.org", "--webhook-address=0"},
			want: func(o *options) { o.webhookAddress = "0" },
		},
		"other Secrets":          {args: []string{"--public-url=https://fhir.example.org", "--secrets=namespaced"}, err: "Cluster or Namespaced"},
		"a webhook without port": {args: []string{"--public-url=https://fhir.example.org", "--webhook-address=127.0.0.1"}, err: "--webhook-address"},
		"a webhook on port 0":    {args: []string{"--public-url=https://fhir.example.org", "--webhook-address=:0"}, err: "--webhook-address"},
		"a host with a port":     {args: []string{"--public-url=https://fhir.example.org", "--ingress-hosts=a.example.org:80"}, err: "ingress-hosts"},
		"every host":             {args: []string{"--public-url=https://fhir.example.org", "--ingress-hosts=*"}, err: "ingress-hosts"},
		"an invalid scheme":      {args: []string{"--public-url=https://fhir.example.org", "--ingress-scheme=ftp"}, err: "ingress-scheme"},
		"no annotation name":     {args: []string{"--public-url=https://fhir.example.org", "--ingress-annotation==4m"}, err: "ingress-annotation"},
		"no annotation value":    {args: []string{"--public-url=https://fhir.example.org", "--ingress-annotation=a"}, err: "ingress-annotation"},
		"a Gateway's name":       {args: []string{"--public-url=https://fhir.example.org", "--gateways=public"}, err: "gateways"},
		"an invalid port":        {args: []string{"--public-url=https://fhir.example.org", "--facade-port=0"}, err: "facade-port"},
		"another scheme":         {args: []string{"--public-url=ftp://fhir.example.org"}, err: "--public-url"},
		"no namespace":           {args: []string{"--public-url=https://fhir.example.org", "--namespace="}, err: "--namespace"},
		"an invalid namespace":   {args: []string{"--public-url=https://fhir.example.org", "--webhooks-namespace=Hooks"}, err: "--webhooks-namespace"},
		"connections in its namespace": {
			args: []string{"--public-url=https://fhir.example.org", "--namespace=ops", "--connections-namespace=ops"},
			err:  `--namespace and --connections-namespace must differ: both are "ops"`,
		},
		"webhooks with connections": {
			args: []string{"--public-url=https://fhir.example.org", "--webhooks-namespace=paddock-connections"},
			err:  "--connections-namespace and --webhooks-namespace must differ",
		},
		"an argument":          {args: []string{"--public-url=https://fhir.example.org", "run"}, err: `"run"`},
		"an unknown log level": {args: []string{"--log-level=loud"}, err: "loud"},
		"an unknown flag":      {args: []string{"--sites=3"}, err: "sites"},
		"a flag without value": {args: []string{"--namespace"}, err: "namespace"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(tt.args, &bytes.Buffer{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want one that contains %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			if tt.want != nil {
				tt.want(&want)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{}, exposureOptions{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusedPublicURL shows that the error about an address with a password does not quote the password.
func TestRefusedPublicURL(t *testing.T) {
	for _, address := range []string{"https://user:sesame@fhir.example.org", "https://user:sesame@fhir.example.org:port", "https://fhir.example.org?key=sesame"} {
		_, err := parseOptions([]string{"--public-url=" + address}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "--public-url") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got error %v, want one with --public-url and without the address", address, err)
		}
	}
}
