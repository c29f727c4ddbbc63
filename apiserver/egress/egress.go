// Package egress dials hosts that tenants choose. It checks the address of each connection after
// name resolution, so that no DNS name leads into the operator's networks.
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

// ErrProhibited means that a dialer of NewDialer may not connect to an address. The error of the dial
// wraps it.
var ErrProhibited = ssrf.ErrProhibitedIP

const (
	dialTimeout = 5 * time.Second
	// The keep-alive probes detect a dead peer within half a minute.
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
)

// ownNetworks are the loopback and link-local networks. Link-local addresses of clouds serve the
// credentials of machines.
var ownNetworks = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
}

// NewDialer returns a dialer for public addresses (RFC 6890) and the allowed networks, on any port.
// A loopback or link-local address is allowed only by a network of such addresses, for example
// 127.0.0.1/32. A larger network that contains the address does not allow it. The error for any
// other address wraps ErrProhibited.
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

// leadsHere reports whether an address is loopback, link-local or unspecified. Dialing an
// unspecified address connects to this host.
func leadsHere(address netip.Addr) bool {
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified()
}

// Networks is a list of networks. It implements flag.Value, whose text is comma-separated CIDRs.
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
			return fmt.Errorf("%q is not a network in CIDR notation; an example is 10.0.0.0/8", text)
		}
		if network != network.Masked() {
			return fmt.Errorf("%q has host bits set: use %s", text, network.Masked())
		}
		*n = append(*n, network)
	}
	return nil
}
