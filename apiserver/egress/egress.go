// Package egress dials hosts that tenants name. It checks the very address that a
// connection goes to, so that no name, and no change of a name, leads into networks that
// are the operator's own.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"code.dny.dev/ssrf"
)

// ErrProhibited is in the error of a dial to an address that is not allowed.
var ErrProhibited = ssrf.ErrProhibitedIP

const (
	dialTimeout = 5 * time.Second
	// keepAlive finds out within half a minute that the other side is gone.
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
)

// NewDialer returns a dialer that connects to public addresses (RFC 6890), on any port,
// and to those of the networks.
func NewDialer(allowed []netip.Prefix) *net.Dialer {
	var v4, v6 []netip.Prefix
	for _, network := range allowed {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	return &net.Dialer{
		Timeout:         dialTimeout,
		Control:         guardian.Safe,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount},
	}
}

// Networks is a list of networks as the value of a flag: CIDR notation, with commas.
type Networks []netip.Prefix

// String implements flag.Value.
func (n *Networks) String() string {
	texts := make([]string, len(*n))
	for i, network := range *n {
		texts[i] = network.String()
	}
	return strings.Join(texts, ",")
}

// Set implements flag.Value.
func (n *Networks) Set(value string) error {
	*n = nil
	for text := range strings.SplitSeq(value, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		if network != network.Masked() {
			return fmt.Errorf("%q has bits beyond its length: the network is %s", text, network.Masked())
		}
		*n = append(*n, network)
	}
	return nil
}
