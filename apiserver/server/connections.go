package server

import (
	"net"
	"sync"

	"golang.org/x/net/netutil"
)

// limitListener limits the open connections of each client address to perAddress, and closes
// further ones.
type limitListener struct {
	net.Listener
	perAddress int

	mu   sync.Mutex
	open map[string]int // by client address
}

// limitConnections limits the open connections of a listener: all of them, and those of one client
// address. 0 is no limit. Connections beyond all wait in the backlog of the system; those beyond
// perAddress are closed.
func limitConnections(listener net.Listener, all, perAddress int) net.Listener {
	if all > 0 {
		listener = netutil.LimitListener(listener, all)
	}
	if perAddress == 0 {
		return listener
	}
	return &limitListener{Listener: listener, perAddress: perAddress, open: map[string]int{}}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := hostOf(conn.RemoteAddr().String())
		if l.acquire(address) {
			return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { l.release(address) })}, nil
		}
		_ = conn.Close() // no byte was read or written, so an error loses nothing
	}
}

func (l *limitListener) acquire(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] >= l.perAddress {
		return false
	}
	l.open[address]++
	return true
}

func (l *limitListener) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// limitedConn is a connection that counts against the limit until it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
