package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

var siteMoveResource = v1alpha1.GroupVersion.WithResource("sitemoves")

const (
	// movePoll is the interval at which the state of a move is read.
	movePoll = 500 * time.Millisecond
	// postgresTarget is the prefix of --to before the name of a Secret, poolTarget the value for the pool of
	// the Site's class, which a colon and a region may follow.
	postgresTarget, poolTarget = "postgres:", "pool"
)

func (a *app) moveCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "move SITE", Short: "Move a site to another storage or namespace",
		Long: `Moves the data of a site to another storage, or to a Site of another namespace, under the same siteID and URL. The site serves reads all the time, and
refuses writes with 503 for seconds. Afterwards the former storage keeps its data until the move is confirmed or rolled
back. The command creates a SiteMove, which the controller carries out, and shows its
progress. The command can be interrupted. Without --to and --to-namespace, it shows the move in progress.`,
		Example: `  kubectl paddock move demo -n demo --to postgres:demo-db
  kubectl paddock move demo -n demo --to-namespace clinic
  kubectl paddock move demo -n demo --confirm
  kubectl paddock move demo -n demo --roll-back`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	to := flags.String("to", "", "the new storage: postgres:SECRET, with the name of a Secret of type paddock.health/dsn in the namespace, or pool or pool:REGION, for another database of the pool of the site's class")
	key := flags.String("key", v1alpha1.DSNKey, "the key of the connection string in the Secret of --to")
	toNamespace := flags.String("to-namespace", "", "the namespace of a Site with the same siteID that takes over by its spec.takeOver; its spec.storage is the new storage")
	toSite := flags.String("to-site", "", "the name of the Site in --to-namespace, if it is not SITE")
	copyBindings := flags.Bool("copy-role-bindings", false, "with --to-namespace: create the RoleBindings to ClusterRoles of Paddock that the new namespace lacks, so that callers keep their rights")
	confirm := flags.Bool("confirm", false, "confirm the move: delete the data in the former storage")
	rollBack := flags.Bool("roll-back", false, "roll the move back: delete the copy, and return to the former storage if the site has switched to the new one")
	command.RunE = func(command *cobra.Command, args []string) error {
		target := storageOf(*to, *key)
		begin := *to != "" || *toNamespace != ""
		switch {
		case *to != "" && *toNamespace != "" || *toNamespace != "" && (*confirm || *rollBack):
			return usagef(command, "give only one of --to, --to-namespace, --confirm and --roll-back")
		case *toNamespace == "" && (*toSite != "" || *copyBindings):
			return usagef(command, "--to-site and --copy-role-bindings need --to-namespace")
		case *confirm && *rollBack || *to != "" && (*confirm || *rollBack):
			return usagef(command, "give only one of --to, --confirm and --roll-back")
		case *to != "" && target == nil:
			return usagef(command, "--to: %q is not a storage; use %sSECRET with the name of a Secret, %[3]s, or %[3]s:REGION", *to, postgresTarget, poolTarget)
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		site, err := a.site(command.Context(), c, args[0])
		if err != nil {
			return err
		}
		namespace, current, err := c.currentMove(command.Context(), site)
		if err != nil {
			return err
		}
		if begin && current != "" {
			return fmt.Errorf("SiteMove %s/%s of site %s/%s has not ended; end it with --confirm or --roll-back", namespace, current, site.Namespace, site.Name)
		}
		if begin {
			spec := v1alpha1.SiteMoveSpec{SiteName: site.Name}
			if target != nil {
				spec.To = *target
			} else {
				spec.ToSite = &v1alpha1.SiteName{Namespace: *toNamespace, Name: cmp.Or(*toSite, site.Name)}
				if err := a.checkBindings(command.Context(), c, site.Namespace, *toNamespace, *copyBindings); err != nil {
					return err
				}
			}
			name, err := c.createMove(command.Context(), site, spec)
			if err != nil {
				return err
			}
			a.say("created SiteMove %s", name)
			return a.showMove(command.Context(), c, site.Namespace, name)
		}
		if current == "" {
			return fmt.Errorf("site %s/%s has no move in progress; begin one with --to or --to-namespace", site.Namespace, site.Name)
		}
		decision := v1alpha1.MoveDecision("")
		if *confirm {
			decision = v1alpha1.MoveConfirm
		} else if *rollBack {
			decision = v1alpha1.MoveRollBack
		}
		if err := c.decideMove(command.Context(), namespace, current, decision); err != nil {
			return err
		}
		return a.showMove(command.Context(), c, namespace, current)
	}
	return command
}

// currentMove returns the namespace and name of the SiteMove in status.move of a Site. If there is none, it
// returns those of a SiteMove of the Site that waits to begin, or "".
func (c *cluster) currentMove(ctx context.Context, site *v1alpha1.Site) (namespace, name string, err error) {
	if site.Status.Move != nil {
		return site.Status.Move.NamespaceOr(site.Namespace), site.Status.Move.Name, nil
	}
	list, err := c.objects.Resource(siteMoveResource).Namespace(site.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", fmt.Errorf("list the SiteMoves of namespace %s: %w", site.Namespace, err)
	}
	for i := range list.Items {
		move := &v1alpha1.SiteMove{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, move); err != nil {
			return "", "", fmt.Errorf("read SiteMove %s/%s: %w", site.Namespace, list.Items[i].GetName(), err)
		}
		if move.Spec.SiteName == site.Name && !move.Status.Phase.Ended() {
			return move.Namespace, move.Name, nil
		}
	}
	return "", "", nil
}

// storageOf returns the storage that --to names, or nil if it names none. key is that of --key.
func storageOf(to, key string) *v1alpha1.Storage {
	postgres := &v1alpha1.PostgresStorage{}
	secret, isExternal := strings.CutPrefix(to, postgresTarget)
	region, inRegion := strings.CutPrefix(to, poolTarget+":")
	switch {
	case isExternal && secret != "":
		postgres.External = &v1alpha1.ExternalPostgres{SecretRef: v1alpha1.DSNReference{Name: secret, Key: key}}
	case to == poolTarget:
		postgres.Pool = &v1alpha1.PooledPostgres{}
	case inRegion && region != "":
		postgres.Pool = &v1alpha1.PooledPostgres{Region: region}
	default:
		return nil
	}
	return &v1alpha1.Storage{Type: v1alpha1.StoragePostgres, Postgres: postgres}
}

// createMove creates a SiteMove of a Site, and returns its name.
func (c *cluster) createMove(ctx context.Context, site *v1alpha1.Site, spec v1alpha1.SiteMoveSpec) (string, error) {
	move := &v1alpha1.SiteMove{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SiteMove"},
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, GenerateName: site.Name + "-"},
		Spec:       spec,
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(move)
	if err != nil {
		return "", fmt.Errorf("encode the SiteMove: %w", err)
	}
	created, err := c.objects.Resource(siteMoveResource).Namespace(site.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a SiteMove of Site %s/%s: %w", site.Namespace, site.Name, err)
	}
	return created.GetName(), nil
}

// decideMove sets the decision of a SiteMove, if it is not empty.
func (c *cluster) decideMove(ctx context.Context, namespace, name string, decision v1alpha1.MoveDecision) error {
	if decision == "" {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"decision":%q}}`, decision)
	_, err := c.objects.Resource(siteMoveResource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("set the decision of SiteMove %s/%s: %w", namespace, name, err)
	}
	return nil
}

// showMove prints a line for each change of a move, until it has ended or awaits a decision.
func (a *app) showMove(ctx context.Context, c *cluster, namespace, name string) error {
	last := ""
	for {
		object, err := c.objects.Resource(siteMoveResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("SiteMove %s/%s was deleted", namespace, name)
		}
		move := &v1alpha1.SiteMove{}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, move)
		}
		if err != nil {
			return fmt.Errorf("get SiteMove %s/%s: %w", namespace, name, err)
		}
		if line := moveLine(move); line != last {
			a.say("%s", line)
			last = line
		}
		if done, err := isMoveDone(move); done {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("the move goes on; repeat the command without --to and --to-namespace to see its progress")
		case <-time.After(movePoll):
		}
	}
}

// moveLine describes the state of a move.
func moveLine(move *v1alpha1.SiteMove) string {
	status := &move.Status
	parts := []string{string(status.Phase)}
	if status.Phase == "" {
		parts[0] = string(v1alpha1.MovePending)
	}
	if status.Progress != "" {
		parts = append(parts, status.Progress)
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Message != "" {
		parts = append(parts, ready.Message)
	}
	if status.PausedTime != nil && status.ResumedTime != nil && !status.Phase.PausesWrites() {
		parts = append(parts, fmt.Sprintf("Writes were paused for %.1f s.", status.ResumedTime.Sub(status.PausedTime.Time).Seconds()))
	}
	return strings.Join(parts, "  ")
}

// isMoveDone reports whether a move has ended or awaits a decision. err is why the move failed.
func isMoveDone(move *v1alpha1.SiteMove) (done bool, err error) {
	status, decision := &move.Status, move.Spec.Decision
	switch {
	case status.Phase == v1alpha1.MoveCompleted:
		return true, nil
	case status.Phase == v1alpha1.MoveRolledBack && decision == v1alpha1.MoveRollBack:
		return true, nil
	case status.Phase == v1alpha1.MoveRolledBack:
		return true, errors.New("the move was rolled back")
	case status.Phase == v1alpha1.MoveSwitched && decision == "":
		return true, nil
	}
	return false, nil
}
