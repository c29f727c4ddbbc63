package commands

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/backup"
)

func (a *app) restoreCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "restore SITE", Short: "Restore a backup in S3-compatible storage into a Site",
		Long: `Downloads a backup that the chart has scheduled into a directory, compares its files with their digests, and imports
them into the Site, which should be empty. The records get all their versions, times and claims. The token needs the
verb import on the Site.

The credentials are those of $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN. Webhooks are in
` + backup.ObjectsName + ` in the directory, and are not restored; use kubectl apply to restore them. A restore that was
interrupted goes on if the command is repeated with the same directory.`,
		Example: `  kubectl paddock restore demo -n demo --as-service-account administrator --from s3://backups/paddock/demo/demo --directory demo-restored
  kubectl paddock restore demo -n demo --as-service-account administrator --s3-endpoint https://minio.example.org \
    --from s3://backups/paddock/demo/demo/2031-03-01T02-17-00.123Z-5f1c2ab4 --directory demo-restored`,
		Args: arguments("SITE"), ValidArgsFunction: a.completeSites,
	}
	flags := command.Flags()
	var from backup.Config
	flags.StringVar(&from.Address, "from", "", "address of the backups of a Site, the newest of which is restored, or of one backup: s3://bucket/path (required)")
	flags.StringVar(&from.Endpoint, "s3-endpoint", backup.DefaultEndpoint, "URL of the S3 API")
	flags.StringVar(&from.Region, "s3-region", "", "region of the bucket; if unset, the endpoint is asked for it")
	flags.StringVar(&from.CAFile, "s3-ca-file", "", "path of a PEM file with CA certificates that verify the certificate of the S3 API, in addition to the system's")
	directory := flags.String("directory", "", "path of a directory for the files; it is created if it does not exist (required)")
	dryRun := flags.Bool("dry-run", false, "download the backup and validate each line, and write nothing to the Site")
	site := addSiteFlags(command)
	printer := a.formatFlag(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		p, err := printer()
		switch {
		case err != nil:
			return err
		case from.Address == "":
			return usagef(command, "--from is required: the address of backups, such as s3://bucket/path")
		case *directory == "":
			return usagef(command, "--directory is required")
		}
		if _, _, err := backup.ParseAddress(from.Address); err != nil {
			return usagef(command, "--from: %v", err)
		}
		if _, err := backup.ParseEndpoint(from.Endpoint); err != nil {
			return usagef(command, "--s3-endpoint: %v", err)
		}
		opened, progress, err := a.openBulk(command, site, args[0])
		if err != nil {
			return err
		}
		name, err := backup.Fetch(command.Context(), from, *directory, progress)
		if err != nil {
			return err
		}
		a.say("Importing the backup %s. Its Webhooks are in %s.", name, filepath.Join(*directory, backup.ObjectsName))
		return a.importDirectory(command, opened, *directory, *dryRun, progress, p)
	}
	return command
}
