package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"
)

// openDoor forwards requests to an API server on this machine. It adds the token of the demo to
// requests without an Authorization header.
type openDoor struct{ listener net.Listener }

// listenOpen reserves the port. Requests wait until serve is called.
func listenOpen(port int) (*openDoor, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("--port: %w", err)
	}
	return &openDoor{listener}, nil
}

func (d *openDoor) url() string { return "http://" + d.listener.Addr().String() }

// serve forwards requests to target until ctx ends.
func (d *openDoor) serve(ctx context.Context, target string, files outputs) {
	base, err := url.Parse(target)
	if err != nil {
		panic(err) // target is an address that this program has made
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &httputil.ReverseProxy{
		FlushInterval: -1, // streams of deliveries
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			if r.Out.Header.Get("Authorization") == "" {
				r.Out.Header.Set("Authorization", "Bearer "+files.token())
			}
		},
	}}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends anyway
	defer stop()
	if err := server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "run: serve requests without a token:", err)
	}
}
