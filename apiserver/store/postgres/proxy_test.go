package postgres_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is a TCP proxy between a pool and its server. It can break connections.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	// down refuses and closes connections. stalled holds back all bytes until it is closed.
	down    bool
	stalled chan struct{}
}

// newProxy starts a proxy to the server of a URL and returns the URL of the proxy.
func newProxy(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: at.Host, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		p.mend()
		_ = listener.Close()
		p.cut()
	})
	go p.accept()
	at.Host = listener.Addr().String()
	return p, at.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.carry(client)
	}
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil || !p.add(client, server) {
		_ = client.Close()
		if server != nil {
			_ = server.Close()
		}
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
	return !p.down
}

// copy copies bytes in one direction, and closes both connections at the end.
func (p *proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		stalled := p.stalled
		p.mu.Unlock()
		if stalled != nil {
			<-stalled
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			p.mu.Lock()
			delete(p.conns, to)
			delete(p.conns, from)
			p.mu.Unlock()
			return
		}
	}
}

// cut closes all connections and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// stall holds back all bytes, like a network that drops all packets.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = make(chan struct{})
}

// mend ends cut and stall.
func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}
