package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bundle"
)

// podSelectors select the Pods of a report: those of Paddock, and those of provisioned databases. The Pods
// that CloudNativePG runs do not have the label app.kubernetes.io/part-of=paddock.
var podSelectors = []string{"app.kubernetes.io/part-of=paddock", "cnpg.io/cluster in (paddock-postgres, paddock-postgres-b)"}

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func (a *app) reportCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "report [SITE]", Short: "Write a support bundle without records and secrets",
		Long: `Writes a tar.gz for a support request: the Sites of the namespace, or of all namespaces with -A, with their
conditions and limits; webhooks without the paths of their URLs; Events; versions; the states of the Pods. It has no
records, Secrets, tokens, logs or environments. What the user has no right to read is missing, and errors.yaml says so.`,
		Example:           "  kubectl paddock report -A --file report.tar.gz",
		ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	all := flags.BoolP("all-namespaces", "A", false, "report the Sites of all namespaces")
	file := flags.String("file", "", "path of the file, which must not exist; if unset, paddock-report-TIME.tar.gz in the working directory")
	system := flags.String("system-namespace", "paddock-system", "namespace of the controller and the API servers")
	command.Args = atMostSite(all)
	command.RunE = func(command *cobra.Command, args []string) error {
		at := a.now().UTC()
		folder := "paddock-report-" + at.Format("20060102T150405Z")
		path := *file
		if path == "" {
			path = folder + ".tar.gz"
		}
		sites, hooks, err := a.readSites(command, args, *all)
		if err != nil {
			return err
		}
		r := &report{app: a, sites: sites, hooks: hooks, failed: []string{}}
		if err := r.collect(command.Context(), *system); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("write --file: %w", err)
		}
		if err := errors.Join(bundle.Write(out, folder, at, r.files), out.Close()); err != nil {
			_ = os.Remove(path) // an incomplete report is of no use; the error that matters is err
			return fmt.Errorf("write --file: %w", err)
		}
		if len(r.failed) > 0 {
			a.say("The report is incomplete: %d items could not be read. Its file errors.yaml lists them.", len(r.failed))
		}
		_, err = fmt.Fprintln(a.Streams.Out, path)
		return err
	}
	return command
}

// report collects the files of a bundle.
type report struct {
	*app
	sites []v1alpha1.Site
	// hooks is nil if the Webhooks could not be read.
	hooks []v1alpha1.Webhook
	files []bundle.File
	// failed are the items that could not be read.
	failed []string
}

func (r *report) add(name string, content any) {
	r.files = append(r.files, bundle.File{Name: name, Content: content})
}

// collect reads what the report has in addition to Sites and Webhooks, and makes the files.
func (r *report) collect(ctx context.Context, system string) error {
	c, err := r.connect()
	if err != nil {
		return err
	}
	namespaces := []string{system}
	limits := []bundle.Limits{}
	for i := range r.sites {
		site := &r.sites[i]
		r.add("sites/"+site.Namespace+"/"+site.Name+".yaml", bundle.Site(site))
		state := stateOf(site, nil)
		limits = append(limits, bundle.Limits{Namespace: site.Namespace, Name: site.Name, Requests: site.Spec.Limits, Cluster: site.Spec.Storage.Cluster, NearLimit: state.NearLimit})
		if !slices.Contains(namespaces, site.Namespace) {
			namespaces = append(namespaces, site.Namespace)
		}
	}
	r.add("limits.yaml", limits)
	if r.hooks == nil {
		r.failed = append(r.failed, "webhooks")
	}
	hooks := []bundle.Webhook{}
	for i := range r.hooks {
		if slices.Contains(namespaces, r.hooks[i].Namespace) {
			hooks = append(hooks, bundle.SelectWebhook(&r.hooks[i]))
		}
	}
	r.add("webhooks.yaml", hooks)
	pods, listed := r.pods(ctx, c, namespaces)
	r.add("pods.yaml", pods)
	r.add("events.yaml", r.events(ctx, c, namespaces, listed))
	r.add("versions.yaml", r.versions(ctx, c, pods))
	r.add("errors.yaml", r.failed)
	return ctx.Err()
}

// pods returns the Pods of the report. listed has their names in the form namespace/name.
func (r *report) pods(ctx context.Context, c *cluster, namespaces []string) (selected []bundle.Pod, listed map[string]bool) {
	selected, listed = []bundle.Pod{}, map[string]bool{}
	for _, namespace := range namespaces {
		for _, selector := range podSelectors {
			found, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				r.fail("pods of "+namespace, err)
				break
			}
			for i := range found.Items {
				name := namespace + "/" + found.Items[i].Name
				if !listed[name] {
					listed[name] = true
					selected = append(selected, bundle.SelectPod(&found.Items[i]))
				}
			}
		}
	}
	return selected, listed
}

func (r *report) events(ctx context.Context, c *cluster, namespaces []string, pods map[string]bool) []bundle.Event {
	selected := []bundle.Event{}
	for _, namespace := range namespaces {
		options := metav1.ListOptions{Limit: listPage}
		for {
			page, err := c.typed.CoreV1().Events(namespace).List(ctx, options)
			if err != nil {
				r.fail("events of "+namespace, err)
				break
			}
			for i := range page.Items {
				if event, ok := bundle.SelectEvent(&page.Items[i], pods); ok {
					selected = append(selected, event)
				}
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
	}
	slices.SortStableFunc(selected, func(x, y bundle.Event) int { return x.LastSeen.Compare(y.LastSeen.Time) })
	return selected
}

// versions are the releases of a report.
type versions struct {
	Plugin     string `json:"plugin"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Definitions are the stored versions of the CustomResourceDefinitions of Paddock, by name.
	Definitions map[string][]string `json:"definitions,omitempty"`
	// Images are the container images of the Pods.
	Images []string `json:"images,omitempty"`
}

func (r *report) versions(ctx context.Context, c *cluster, pods []bundle.Pod) versions {
	v := versions{Plugin: r.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Definitions: map[string][]string{}}
	if server, err := c.typed.Discovery().ServerVersion(); err != nil {
		r.fail("version of Kubernetes", err)
	} else {
		v.Kubernetes = server.GitVersion
	}
	for _, pod := range pods {
		for _, container := range pod.Containers {
			if !slices.Contains(v.Images, container.Image) {
				v.Images = append(v.Images, container.Image)
			}
		}
	}
	slices.Sort(v.Images)
	found, err := c.objects.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		r.fail("custom resource definitions", err)
		return v
	}
	for _, definition := range found.Items {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		if group == v1alpha1.GroupVersion.Group || strings.HasSuffix(group, "."+v1alpha1.GroupVersion.Group) {
			v.Definitions[definition.GetName()], _, _ = unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
		}
	}
	return v
}

func (r *report) fail(what string, err error) {
	r.failed = append(r.failed, what+": "+err.Error())
}
