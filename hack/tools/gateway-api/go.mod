// The kinds of the Gateway API, for the tests: nothing of it is built. Only its release is pinned,
// so `go mod tidy` would take the requirement away.
module github.com/paddock-health/paddock/hack/tools/gateway-api

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.3
