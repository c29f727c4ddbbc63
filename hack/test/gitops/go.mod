module github.com/paddock-health/paddock/hack/test/gitops

go 1.26.0

require (
	github.com/yuin/gopher-lua v1.1.2
	go.yaml.in/yaml/v3 v3.0.5
)
