package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestRebinding dials a name that resolves to an allowed address the first time, and to
// another one from then on.
func TestRebinding(t *testing.T) {
	allowed, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	var asked atomic.Int32
	server := serveNames(t, func() netip.Addr {
		if asked.Add(1) == 1 {
			return allowed
		}
		return other
	})
	first, port := listen(t, allowed, "0")
	second, _ := listen(t, other, port)
	dialer := NewDialer([]netip.Prefix{netip.PrefixFrom(allowed, allowed.BitLen())})
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server)
	}}

	conn, err := dialer.DialContext(t.Context(), "tcp4", net.JoinHostPort("db.example.", port))
	if err != nil {
		t.Fatalf("dial while the name is that of an allowed address: %v", err)
	}
	_, _ = conn.Read(make([]byte, 1)) // returns when the other side has counted, and closed
	_ = conn.Close()
	if _, err := dialer.DialContext(t.Context(), "tcp4", net.JoinHostPort("db.example.", port)); !errors.Is(err, ErrProhibited) {
		t.Errorf("dial when the name has become another's: %v, want %v", err, ErrProhibited)
	}
	if got := first.Load(); got != 1 {
		t.Errorf("the allowed address got %d connections, want 1", got)
	}
	if got := second.Load(); got != 0 {
		t.Errorf("the other address got %d connections, want 0", got)
	}
}

// listen counts the connections to an address.
func listen(t *testing.T, address netip.Addr, port string) (connections *atomic.Int32, listensAt string) {
	t.Helper()
	listener, err := net.Listen("tcp4", net.JoinHostPort(address.String(), port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	_, listensAt, _ = net.SplitHostPort(listener.Addr().String())
	return connections, listensAt
}

// serveNames answers every question for an IPv4 address, and no other.
func serveNames(t *testing.T, answer func() netip.Addr) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if err := message.Unpack(buffer[:n]); err != nil || len(message.Questions) != 1 {
				continue
			}
			question := message.Questions[0]
			reply := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: message.ID, Response: true, RecursionAvailable: true},
				Questions: message.Questions,
			}
			if question.Type == dnsmessage.TypeA {
				reply.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class},
					Body:   &dnsmessage.AResource{A: answer().As4()},
				}}
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
