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

// serveStatic answers each path with the bytes of the file of that name, and says
// where on standard output: net/http and nothing else, as the baseline for reads.
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
			_, _ = w.Write(content) // a client that went away is its own matter
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

// startStatic starts serveStatic as a process, as the API server is one. It returns
// its address and its process.
func startStatic(ctx context.Context, dir string) (address string, pid int, err error) {
	return startSelf(ctx, "-static", dir)
}

// startSelf starts this program as one that says on its standard output where it serves.
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
