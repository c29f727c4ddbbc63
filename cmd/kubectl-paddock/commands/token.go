package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/cmd/kubectl-paddock/output"
)

const (
	// minTokenLife is the shortest life of a token that kube-apiserver issues.
	minTokenLife = 10 * time.Minute
	// minRenewalPause and maxRenewalPause are the minimum and maximum delay before a failed renewal is
	// tried again. The delay doubles with each failure. minRenewalPause is also the minimum delay between
	// two renewals.
	minRenewalPause, maxRenewalPause = time.Second, time.Minute
)

// issuedToken is a token of a ServiceAccount for a Site.
type issuedToken struct {
	Token    string    `json:"token"`
	Audience string    `json:"audience"`
	IssuedAt time.Time `json:"issuedAt"`
	// ExpiresAt is the time from which the token is invalid. kube-apiserver may choose another
	// lifetime than the requested one.
	ExpiresAt time.Time `json:"expiresAt"`
}

// renewAt returns the time to request another token: when four fifths of the life have passed.
func (t issuedToken) renewAt() time.Time {
	return t.IssuedAt.Add(t.ExpiresAt.Sub(t.IssuedAt) * 4 / 5)
}

// issue requests a token of a ServiceAccount in the namespace of a Site, which only that Site
// accepts.
func (a *app) issue(ctx context.Context, c *cluster, site *v1alpha1.Site, account string, life time.Duration) (issuedToken, error) {
	seconds := int64(life.Seconds())
	audience := "paddock.health/" + site.Namespace + "/" + site.Name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds}}
	began := a.now()
	made, err := c.typed.CoreV1().ServiceAccounts(site.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return issuedToken{}, fmt.Errorf("request a token of the ServiceAccount %s/%s: %w", site.Namespace, account, err)
	}
	return issuedToken{made.Status.Token, audience, began.UTC().Truncate(time.Second), made.Status.ExpirationTimestamp.UTC()}, nil
}

func (a *app) tokenCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "token SITE --as-service-account NAME", Short: "Issue a token for a Site",
		Long: `Issues a token of a ServiceAccount in the namespace of the Site. Only this Site accepts the token, which
has the rights of the ServiceAccount. The token is printed, or written to --file, which only the user can read.

With --renew the command writes a new token to --file before the old one expires, until it is interrupted.`,
		Example: `  curl -H "Authorization: Bearer $(kubectl paddock token demo -n demo --as-service-account editor)" …
  kubectl paddock token demo -n demo --as-service-account editor --file token --renew`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	account := flags.String("as-service-account", "", "name of the ServiceAccount in the namespace of the Site. Required")
	life := flags.Duration("duration", time.Hour, "life of the token, at least 10m. kube-apiserver may shorten it")
	file := flags.String("file", "", "path of the file for the token; if unset, the token is printed")
	renew := flags.Bool("renew", false, "keep running and renew the token in --file")
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		switch {
		case err != nil:
			return err
		case *account == "":
			return usagef(command, "--as-service-account is required: the name of a ServiceAccount in the namespace of the Site")
		case *life < minTokenLife:
			return usagef(command, "--duration: %s is too short; the minimum is %s", *life, minTokenLife)
		case *renew && *file == "":
			return usagef(command, "--renew needs --file, the path of the file for the tokens")
		}
		ctx := command.Context()
		c, err := a.connect()
		if err != nil {
			return err
		}
		site, err := a.site(ctx, c, args[0])
		if err != nil {
			return err
		}
		issue := func(ctx context.Context) (issuedToken, error) { return a.issue(ctx, c, site, *account, *life) }
		if *renew {
			return a.renew(ctx, *file, issue, sleep)
		}
		made, err := issue(ctx)
		switch {
		case err != nil:
			return err
		case *file != "":
			return writeToken(*file, made)
		case p.Format == output.TableFormat:
			_, err = fmt.Fprintln(a.Streams.Out, made.Token)
			return err
		default:
			return p.Print(made, output.Table{})
		}
	}
	return command
}

// renew writes a token to a file and replaces it before it expires, until ctx is done. It then
// returns nil and leaves the file. It returns an error if the first token cannot be issued, if
// kube-apiserver refuses another one, or if the file cannot be written.
func (a *app) renew(ctx context.Context, file string, issue func(context.Context) (issuedToken, error), sleep func(context.Context, time.Duration)) error {
	pause := minRenewalPause
	for isFirst := true; ; isFirst = false {
		made, err := issue(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has ended the command
		case err != nil && (isFirst || isRefusal(err)):
			return err
		case err != nil:
			a.say("The token cannot be renewed, and the command will retry in %s: %v", pause, err)
			sleep(ctx, pause)
			pause = min(2*pause, maxRenewalPause)
			continue
		}
		if err := writeToken(file, made); err != nil {
			return err
		}
		pause = minRenewalPause
		a.say("%s has a token until %s.", file, made.ExpiresAt.Format(time.RFC3339))
		sleep(ctx, max(made.renewAt().Sub(a.now()), minRenewalPause))
	}
}

// isRefusal reports whether another request for a token would fail too.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// sleep returns after d or when ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// writeToken replaces the token in a file, so that readers see the old or the new token.
func writeToken(path string, made issuedToken) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".token-*") // with the mode 0600
	if err != nil {
		return fmt.Errorf("write --file: %w", err)
	}
	_, err = fmt.Fprintln(temporary, made.Token)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the error that matters is err
		return fmt.Errorf("write --file: %w", err)
	}
	return nil
}
