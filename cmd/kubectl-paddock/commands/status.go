package commands

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
)

// siteState is what the command status shows of a Site.
type siteState struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	SiteID    string `json:"siteID"`
	URL       string `json:"url,omitempty"`
	Storage   string `json:"storage"`
	// Ready is the status of the condition Ready: True, False or Unknown.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// NearLimit is the message of the condition StorageNearLimit while it is true.
	NearLimit string `json:"nearLimit,omitempty"`
	// Limits are the limits that the Site sets. A limit that it does not set has its default.
	Limits        v1alpha1.Limits          `json:"limits"`
	ClusterLimits *v1alpha1.ClusterStorage `json:"clusterLimits,omitempty"`
	// Deliveries is nil if the Webhooks could not be read.
	Deliveries *deliveryState `json:"deliveries,omitempty"`
}

// deliveryState summarizes the Webhooks of a Site.
type deliveryState struct {
	Webhooks int `json:"webhooks"`
	// Failing is the number of enabled Webhooks whose last attempt failed.
	Failing int `json:"failing"`
	// Disabled is the number of Webhooks that the server disabled.
	Disabled int `json:"disabled"`
	// Pending is the number of pending deliveries.
	Pending int64 `json:"pending"`
}

func (a *app) statusCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "status [SITE]", Short: "Show Sites, their storage, limits and deliveries",
		Long: `Shows the state of the Sites in the namespace, or of all Sites with -A. A Site that is not ready is red,
and one that is near a limit of its storage or whose webhooks fail is yellow.`,
		Example:           "  kubectl paddock status -A\n  kubectl paddock status demo -n demo -o yaml",
		ValidArgsFunction: a.completeSites,
	}
	all := command.Flags().BoolP("all-namespaces", "A", false, "show the Sites of all namespaces")
	printer := a.formatFlag(command)
	command.Args = atMostSite(all)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		if err != nil {
			return err
		}
		sites, hooks, err := a.readSites(command, args, *all)
		if err != nil {
			return err
		}
		states := make([]siteState, len(sites))
		for i := range sites {
			states[i] = stateOf(&sites[i], hooks)
		}
		if len(states) == 0 && p.Format == output.TableFormat {
			a.say("There are no Sites.")
			return nil
		}
		return p.Print(map[string]any{"items": states}, statusTable(states))
	}
	return command
}

// atMostSite returns a check that a command has at most one argument, and none with
// --all-namespaces.
func atMostSite(all *bool) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return usagef(command, "unexpected argument %q; expected: %s", args[1], command.UseLine())
		case len(args) == 1 && *all:
			return usagef(command, "the argument %q and --all-namespaces exclude each other; omit one of them", args[0])
		}
		return nil
	}
}

// readSites returns the Site of args, or the Sites of the namespace, or those of all namespaces, sorted by
// namespace and name. The Webhooks are nil if they could not be read.
func (a *app) readSites(command *cobra.Command, args []string, all bool) ([]v1alpha1.Site, []v1alpha1.Webhook, error) {
	ctx := command.Context()
	c, err := a.connect()
	if err != nil {
		return nil, nil, err
	}
	namespace := ""
	if !all {
		if namespace, err = a.namespace(); err != nil {
			return nil, nil, err
		}
	}
	var sites []v1alpha1.Site
	if len(args) == 1 {
		site, err := a.site(ctx, c, args[0])
		if err != nil {
			return nil, nil, err
		}
		sites = append(sites, *site)
	} else if sites, err = c.sites(ctx, namespace); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(sites, func(x, y v1alpha1.Site) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	hooks, err := c.webhooks(ctx, namespace)
	if err != nil {
		a.say("The state of deliveries is unknown, because the Webhooks cannot be listed: %v", err)
		return sites, nil, nil
	}
	if hooks == nil {
		hooks = []v1alpha1.Webhook{}
	}
	return sites, hooks, nil
}

func stateOf(site *v1alpha1.Site, hooks []v1alpha1.Webhook) siteState {
	state := siteState{
		Namespace: site.Namespace, Name: site.Name, SiteID: site.SiteID(), URL: site.Status.URL, Storage: storageName(site),
		Ready: string(metav1.ConditionUnknown), Limits: site.Spec.Limits, ClusterLimits: site.Spec.Storage.Cluster,
	}
	if ready := meta.FindStatusCondition(site.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		state.Ready, state.Reason, state.Message = string(ready.Status), ready.Reason, ready.Message
	}
	if near := meta.FindStatusCondition(site.Status.Conditions, v1alpha1.ConditionStorageNearLimit); near != nil && near.Status == metav1.ConditionTrue {
		state.NearLimit = near.Message
	}
	if hooks == nil {
		return state
	}
	state.Deliveries = &deliveryState{}
	for i := range hooks {
		if hooks[i].Namespace == site.Namespace {
			state.Deliveries.add(&hooks[i])
		}
	}
	return state
}

func (d *deliveryState) add(hook *v1alpha1.Webhook) {
	d.Webhooks++
	switch {
	case hook.IsDisabled():
		d.Disabled++
	case hook.Status.FailingSince != nil:
		d.Failing++
	}
	if hook.Status.Pending != nil {
		d.Pending += *hook.Status.Pending
	}
}

// storageName returns the storage of a Site in a word: Cluster, Postgres/external, Postgres/pool, or
// Postgres/ and the engine of a provisioned database.
func storageName(site *v1alpha1.Site) string {
	postgres := site.Spec.Storage.Postgres
	switch {
	case postgres == nil:
		return string(site.Spec.Storage.Type)
	case postgres.Provisioned != nil:
		return string(site.Spec.Storage.Type) + "/" + string(postgres.Provisioned.Engine)
	case postgres.Pool != nil:
		return string(site.Spec.Storage.Type) + "/pool"
	default:
		return string(site.Spec.Storage.Type) + "/external"
	}
}

func statusTable(states []siteState) output.Table {
	table := output.Table{Columns: []string{"Namespace", "Name", "Site ID", "Storage", "Ready", "Reason", "Near limit", "Webhooks", "Pending", "Failing", "Disabled", "URL"}}
	for _, state := range states {
		near := "no"
		if state.NearLimit != "" {
			near = "yes"
		}
		row := output.Row{Cells: []string{state.Namespace, state.Name, state.SiteID, state.Storage, state.Ready, state.Reason, near}}
		if d := state.Deliveries; d != nil {
			row.Cells = append(row.Cells, strconv.Itoa(d.Webhooks), strconv.FormatInt(d.Pending, 10), strconv.Itoa(d.Failing), strconv.Itoa(d.Disabled))
		} else {
			row.Cells = append(row.Cells, "?", "?", "?", "?")
		}
		row.Cells = append(row.Cells, state.URL)
		switch {
		case state.Ready != string(metav1.ConditionTrue):
			row.Level = output.Failure
		case state.NearLimit != "" || state.Deliveries != nil && state.Deliveries.Failing+state.Deliveries.Disabled > 0:
			row.Level = output.Warning
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}
