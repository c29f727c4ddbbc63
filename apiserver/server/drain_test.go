package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestConnectionsAreClosedWhenTheServerStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		http2 bool
	}{{"HTTP/1.1", false}, {"HTTP/2", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stopping := make(chan struct{})
			server := httptest.NewUnstartedServer(closeConnections(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Client", r.RemoteAddr)
			}), stopping))
			server.EnableHTTP2 = c.http2
			server.StartTLS()
			t.Cleanup(server.Close)
			// get returns the client's address, which is the same for all requests of one connection.
			get := func() string {
				response, err := server.Client().Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				if err := response.Body.Close(); err != nil {
					t.Fatal(err)
				}
				if http2 := response.ProtoMajor == 2; http2 != c.http2 {
					t.Fatalf("the response came by %s", response.Proto)
				}
				return response.Header.Get("Client")
			}
			first := get()
			if second := get(); second != first {
				t.Fatal("a connection was closed before the server stopped")
			}
			close(stopping)
			if last := get(); last != first {
				t.Error("the connection was closed before a response asked for it")
			}
			next := get()
			for until := time.Now().Add(patience); c.http2 && next == first && time.Now().Before(until); {
				next = get() // a response in HTTP/2 can precede the GOAWAY frame
			}
			if next == first {
				t.Error("the connection was used again after a response that ends it")
			}
		})
	}
}
