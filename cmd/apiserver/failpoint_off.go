//go:build !failpoints

package main

// failpoint is called after each step of a write to etcd-backed storage. Only
// builds for crash tests do something in it.
var failpoint func(step string)
