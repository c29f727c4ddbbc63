//go:build !failpoints

package main

// failpoint is called after each step of a write to storage of type Cluster, unless it is nil. Only
// builds with the tag failpoints set it.
var failpoint func(step string)
