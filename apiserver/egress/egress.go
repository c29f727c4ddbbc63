// Package egress dials hosts that tenants name. It checks the very address that a
// connection goes to, so that no name, and no change of a name, leads into networks that
// are the operator's own.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
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

// ownNetworks are this host's, and those of its links, where clouds answer with the
// credentials of machines.
var ownNetworks = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
}

// NewDialer returns a dialer that connects to public addresses (RFC 6890), on any port,
// and to those of the networks. This host and its links are opened by networks that lie
// within theirs, and by no wider one.
func NewDialer(allowed []netip.Prefix) *net.Dialer {
	var own []netip.Prefix
	for _, network := range allowed {
		if isOwn(network) {
			own = append(own, network)
		}
	}
	anywhere, here := newGuardian(allowed), newGuardian(own)
	control := func(network, address string, conn syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err == nil && leadsHere(to.Addr().Unmap()) {
			return here.Safe(network, address, conn)
		}
		return anywhere.Safe(network, address, conn)
	}
	return &net.Dialer{
		Timeout:         dialTimeout,
		Control:         control,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount},
	}
}

func newGuardian(allowed []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, network := range allowed {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

func isOwn(network netip.Prefix) bool {
	return slices.ContainsFunc(ownNetworks, func(own netip.Prefix) bool {
		return own.Contains(network.Addr()) && network.Bits() >= own.Bits()
	})
}

// leadsHere reports whether an address is this host's, or of one of its links. The
// unspecified ones are this host when dialled.
func leadsHere(address netip.Addr) bool {
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified()
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
