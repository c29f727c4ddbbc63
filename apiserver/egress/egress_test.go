package egress

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetworks(t *testing.T) {
	for value, want := range map[string]string{
		"10.0.0.0/8":              "10.0.0.0/8",
		"10.0.0.0/8, fd00::/8":    "10.0.0.0/8,fd00::/8",
		"10.0.0.1":                `"10.0.0.1" is not a network`,
		"10.1.0.0/8":              "has host bits set: use 10.0.0.0/8",
		"":                        `"" is not a network`,
		"192.168.0.0/16,example.": `"example." is not a network`,
	} {
		t.Run(value, func(t *testing.T) {
			var networks Networks
			err := networks.Set(value)
			got := networks.String()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("Set(%q) = %s, want %s", value, got, want)
			}
		})
	}
}

// TestDialer dials a listener by names and addresses that lead to it.
func TestDialer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for name, test := range map[string]struct {
		host, allowed string
		prohibited    bool
	}{
		"loopback":                      {host: "127.0.0.1", prohibited: true},
		"loopback by name":              {host: "localhost", prohibited: true},
		"loopback as IPv6":              {host: "::ffff:127.0.0.1", prohibited: true},
		"unspecified":                   {host: "0.0.0.0", prohibited: true},
		"metadata service":              {host: "169.254.169.254", prohibited: true},
		"private":                       {host: "10.0.0.1", prohibited: true},
		"shared":                        {host: "100.64.0.1", prohibited: true},
		"unique local":                  {host: "fd00::1", prohibited: true},
		"link-local":                    {host: "fe80::1", prohibited: true},
		"metadata service as IPv6":      {host: "::ffff:169.254.169.254", prohibited: true},
		"metadata service by NAT64":     {host: "64:ff9b::a9fe:a9fe", prohibited: true},
		"metadata service by 6to4":      {host: "2002:a9fe:a9fe::1", prohibited: true},
		"multicast":                     {host: "224.0.0.1", prohibited: true},
		"broadcast":                     {host: "255.255.255.255", prohibited: true},
		"another network is allowed":    {host: "127.0.0.1", allowed: "10.0.0.0/8,fd00::/8", prohibited: true},
		"every network is allowed":      {host: "127.0.0.1", allowed: "0.0.0.0/0,::/0", prohibited: true},
		"its network is allowed":        {host: "127.0.0.1", allowed: "127.0.0.0/8"},
		"its network, among others, is": {host: "localhost", allowed: "10.0.0.0/8,127.0.0.0/8,::1/128"},
	} {
		t.Run(name, func(t *testing.T) {
			var networks Networks
			if test.allowed != "" {
				if err := networks.Set(test.allowed); err != nil {
					t.Fatal(err)
				}
			}
			conn, err := NewDialer(networks).DialContext(t.Context(), "tcp", net.JoinHostPort(test.host, port))
			if err == nil {
				_ = conn.Close()
			}
			if prohibited := errors.Is(err, ErrProhibited); prohibited != test.prohibited || !prohibited && err != nil {
				t.Errorf("dialing %s: %v, prohibited should be %t", test.host, err, test.prohibited)
			}
		})
	}
}

// TestLocalAddresses asks of networks which addresses of this host and of its links they
// open, and whether they still open others.
func TestLocalAddresses(t *testing.T) {
	loopback := []string{"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"}
	link := []string{"169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0"}
	unspecified := []string{"0.0.0.0", "::", "::ffff:0.0.0.0"}
	private := []string{"10.0.0.1", "192.168.0.1", "fd00::1"}
	addresses := slices.Concat(loopback, link, unspecified, private)
	for allowed, want := range map[string][]string{
		"0.0.0.0/0":                     {"10.0.0.1", "192.168.0.1"},
		"::/0":                          {"fd00::1"},
		"::/0,0.0.0.0/0":                private,
		"10.0.0.0/8":                    {"10.0.0.1"},
		"126.0.0.0/7":                   nil, // 127.0.0.0/8 and another
		"127.0.0.0/8":                   {"127.0.0.1", "127.8.8.8"},
		"127.0.0.1/32":                  {"127.0.0.1"},
		"::1/128":                       {"::1"},
		"169.254.0.0/16":                {"169.254.169.254"},
		"169.254.0.0/15":                nil,
		"fe80::/10":                     {"fe80::1"},
		"fe80::/9":                      nil,
		"0.0.0.0/0,127.0.0.0/8":         {"127.0.0.1", "127.8.8.8", "10.0.0.1", "192.168.0.1"},
		"0.0.0.0/32,::/128":             nil,
		"::ffff:0.0.0.0/96":             nil,
		"::ffff:127.0.0.0/104,fd00::/8": {"fd00::1"},
	} {
		t.Run(allowed, func(t *testing.T) {
			var networks Networks
			if err := networks.Set(allowed); err != nil {
				t.Fatal(err)
			}
			dialer := NewDialer(networks)
			var got []string
			for _, address := range addresses {
				network := "tcp4"
				if strings.Contains(address, ":") {
					network = "tcp6"
				}
				switch err := dialer.Control(network, net.JoinHostPort(address, "5432"), nil); {
				case err == nil:
					got = append(got, address)
				case !errors.Is(err, ErrProhibited):
					t.Errorf("dialing %s: %v, want %v", address, err, ErrProhibited)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("addresses that may be dialled (-want +got):\n%s", diff)
			}
		})
	}
}
