// Package freeport finds free ports for programs that start, and start again, on this machine.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports are below 30000, where node ports begin. Linux uses ports from 32768 for outgoing connections, and
// such a connection could take the port of a program that restarts.
const (
	lowest  = 20000
	highest = 29999
)

// Listen opens a free port of 127.0.0.1.
func Listen() (net.Listener, error) {
	for range 100 {
		port := lowest + rand.IntN(highest-lowest+1)
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("find a free port: none of 100 random ports between %d and %d can be opened: end programs that use these ports", lowest, highest)
}

// Choose returns n different ports of 127.0.0.1 on which no program listens.
func Choose(n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		listener, err := Listen()
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // open until all ports are chosen, so that no two are the same
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Address returns an address of 127.0.0.1 on which no program listens, such as 127.0.0.1:21234.
func Address() (string, error) {
	ports, err := Choose(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), nil
}
