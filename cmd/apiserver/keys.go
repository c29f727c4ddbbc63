package main

import (
	"flag"
	"fmt"

	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/server"
)

// keyOptions are the flags for the files of keys that all replicas share. The method open sets
// opened to the keys in these files.
type keyOptions struct {
	pageFile, holdFile, feedFile string
	opened                       server.Keys
}

func (o *keyOptions) addFlags(flags *flag.FlagSet) {
	const file = "`path` of the file with the keys (one a line, 32 bytes in base64) of "
	flags.StringVar(&o.pageFile, "page-token-key-file", "", file+"page tokens: the first signs, all verify; must be the same on all replicas; reloaded when it changes. Required for the APIs")
	flags.StringVar(&o.holdFile, "hold-key-file", "", file+"hold tokens; if unset, the keys are derived from those of page tokens")
	flags.StringVar(&o.feedFile, "feed-key-file", "", file+"calendar feed URLs; if unset, the keys are derived from those of page tokens")
}

// open reads the key files. If the file of hold tokens or calendar feed URLs is not set, it derives
// their keys from those of page tokens.
func (o *keyOptions) open() error {
	for _, ring := range []struct {
		flag, file string
		into       *keyring.Source
	}{
		{"page-token-key-file", o.pageFile, &o.opened.Page},
		{"hold-key-file", o.holdFile, &o.opened.Hold},
		{"feed-key-file", o.feedFile, &o.opened.Feed},
	} {
		if ring.file == "" && o.opened.Page != nil {
			*ring.into = keyring.Derive(o.opened.Page, ring.flag)
			continue
		}
		if ring.file == "" {
			return fmt.Errorf("--%s must be set", ring.flag)
		}
		source, err := keyring.Open(ring.file)
		if err != nil {
			return fmt.Errorf("--%s: %w", ring.flag, err)
		}
		*ring.into = source
	}
	return nil
}
