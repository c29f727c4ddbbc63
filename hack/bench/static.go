package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// serveStatic responds to each path with the bytes of the file of that name. It prints its address on
// standard output. It uses net/http and nothing else, because it is the baseline for reads.
func serveStatic(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		mux.HandleFunc("/"+file.Name(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content) // it fails only if the client has closed the connection
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	return server.Serve(listener)
}

// startStatic runs serveStatic in a process of its own, like the API server. It returns its address
// and process id.
func startStatic(ctx context.Context, dir string) (address string, pid int, err error) {
	return startSelf(ctx, "-static", dir)
}

// startSelf starts this program again with arguments that make it a server. It returns the address
// that the server prints on standard output, and its process id. The server ends with ctx.
func startSelf(ctx context.Context, arguments ...string) (address string, pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, err
	}
	command := exec.CommandContext(ctx, self, arguments...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return "", 0, err
	}
	if err := command.Start(); err != nil {
		return "", 0, err
	}
	address, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(address), command.Process.Pid, err
}
