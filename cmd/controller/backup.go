package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/backup"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// backupCommand is the first argument of the command that backs up one Site and ends.
const backupCommand = "backup"

type backupOptions struct {
	site           types.NamespacedName
	server, caFile string
	tokenFile      string
	to             backup.Config
	keep           int
	logLevel       slog.Level
}

// parseBackupOptions parses and validates the command line of the backup command. It writes the usage
// text to out.
func parseBackupOptions(args []string, out io.Writer) (backupOptions, error) {
	opts := backupOptions{}
	fs := flag.NewFlagSet("controller "+backupCommand, flag.ContinueOnError)
	fs.SetOutput(out)
	config.RegisterFlags(flag.CommandLine)
	kubeconfig := flag.CommandLine.Lookup(config.KubeconfigFlagName)
	fs.Var(kubeconfig.Value, kubeconfig.Name, "`path` of a kubeconfig; if unset, $KUBECONFIG, the pod's service account or ~/.kube/config is used, in this order")
	fs.Func("site", "`Site` to back up, as namespace/name. Required", func(text string) error {
		var found bool
		opts.site.Namespace, opts.site.Name, found = strings.Cut(text, "/")
		if !found || opts.site.Namespace == "" || opts.site.Name == "" || strings.Contains(opts.site.Name, "/") {
			return errors.New("must have the form namespace/name")
		}
		return nil
	})
	fs.StringVar(&opts.server, "server", "", "base `URL` of the API servers, such as https://paddock-facade.paddock-system.svc. Required")
	fs.StringVar(&opts.caFile, "server-ca-file", "", "`path` of a PEM file with the authorities that are trusted for the certificate of --server; if unset, those of the operating system")
	fs.StringVar(&opts.tokenFile, "token-file", "", "`path` of a file with a token for the Site, read for each request. Its caller needs the verb export on the Site. Required")
	fs.StringVar(&opts.to.Address, "to", "", "`address` of the backups of the Site, as s3://bucket/path; each backup is a folder below it. Required")
	fs.StringVar(&opts.to.Endpoint, "s3-endpoint", backup.DefaultEndpoint, "`URL` of the S3 API")
	fs.StringVar(&opts.to.Region, "s3-region", "", "`region` of the bucket; if unset, the endpoint is asked for it")
	fs.StringVar(&opts.to.CAFile, "s3-ca-file", "", "`path` of a PEM file with authorities that are trusted for the certificate of --s3-endpoint, in addition to those of the operating system; the file may be absent")
	fs.IntVar(&opts.keep, "keep", 7, "`number` of complete backups to keep; older ones are deleted when a newer one is complete; 0 deletes none")
	fs.TextVar(&opts.logLevel, "log-level", slog.LevelInfo, "minimum `level` of logged messages: debug, info, warn or error")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: the command takes only flags", fs.Arg(0))
	}
	for _, required := range []struct{ name, value string }{
		{"site", opts.site.Name}, {"server", opts.server}, {"token-file", opts.tokenFile}, {"to", opts.to.Address},
	} {
		if required.value == "" {
			return opts, fmt.Errorf("--%s is required", required.name)
		}
	}
	if opts.keep < 0 {
		return opts, fmt.Errorf("--keep: %d is negative; give the number of backups to keep, or 0 to keep all", opts.keep)
	}
	return opts, nil
}

// runBackup backs up a Site. It reads the records from the Site's HTTP API, with the token of
// --token-file. It reads the Site, its Webhooks and its WebhookEvents from kube-apiserver, with the
// rights of the kubeconfig or of the pod's service account.
func runBackup(ctx context.Context, args []string) error {
	opts, err := parseBackupOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: opts.logLevel})).With("site", opts.site.String())
	kube, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w (outside a pod, give --kubeconfig)", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	cluster, err := client.New(kube, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create a client of kube-apiserver: %w", err)
	}
	site := &v1alpha1.Site{}
	if err := cluster.Get(ctx, opts.site, site); err != nil {
		return fmt.Errorf("get Site %s: %w", opts.site, err)
	}
	objects, err := webhookObjects(ctx, cluster, opts.site.Namespace)
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(opts.server, "/") + "/site/" + site.SiteID()
	api, err := opts.api(base, log)
	if err != nil {
		return err
	}
	progress := &bulk.Progress{Out: io.Discard, Now: time.Now}
	if log.Enabled(ctx, slog.LevelInfo) {
		progress.Out = os.Stderr
	}
	began := time.Now()
	done, err := backup.Run(ctx, opts.to, api, cmp.Or(site.Status.URL, base), objects, opts.keep, progress)
	if done.Name != "" {
		log.Info("backup complete", "backup", done.Name, "records", done.Records, "versions", done.Versions, "sha256", done.SHA256,
			"from", done.From, "until", done.Until, "seconds", int(time.Since(began).Seconds()), "removed", done.Removed)
	}
	return err
}

// api returns a client of the site at base.
func (o *backupOptions) api(base string, log *slog.Logger) (*siteapi.Client, error) {
	config := siteapi.Config{BaseURL: base, Token: func(context.Context) (string, error) {
		token, err := os.ReadFile(o.tokenFile) // the file is replaced before the token expires
		if err != nil {
			return "", fmt.Errorf("read --token-file: %w", err)
		}
		return strings.TrimSpace(string(token)), nil
	}}
	var err error
	if o.caFile != "" {
		if config.CertificateAuthorities, err = os.ReadFile(o.caFile); err != nil {
			return nil, fmt.Errorf("read --server-ca-file: %w", err)
		}
	}
	api, err := siteapi.New(config)
	if err != nil {
		return nil, fmt.Errorf("--server-ca-file: %w", err)
	}
	api.Retrying = func(reason error, wait time.Duration) {
		log.Warn("a request to the site failed and is sent again", "err", reason, "wait", wait.String())
	}
	return api, nil
}

// webhookObjects returns the Webhooks and WebhookEvents of a namespace as a List in JSON. They have no
// status and no metadata that only one cluster uses, see portable.
func webhookObjects(ctx context.Context, cluster client.Client, namespace string) ([]byte, error) {
	items := []map[string]any{}
	for _, kind := range []string{"WebhookEvent", "Webhook"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		for {
			options := &client.ListOptions{Namespace: namespace, Limit: 500, Continue: list.GetContinue()}
			if err := cluster.List(ctx, list, options); err != nil {
				return nil, fmt.Errorf("list objects of kind %s in namespace %s: %w", kind, namespace, err)
			}
			for i := range list.Items {
				items = append(items, portable(&list.Items[i]))
			}
			if list.GetContinue() == "" {
				break
			}
		}
	}
	return json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
}

// portable returns an object with its spec, name, namespace, labels and annotations only, so that it can
// be applied to any cluster.
func portable(object *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := object.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata, "spec": object.Object["spec"],
	}
}
