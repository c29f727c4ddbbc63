module github.com/paddock-health/paddock/hack/test/manifests/oldest

go 1.26.0

// The oldest supported release of Kubernetes: kubeVersion in charts/paddock/Chart.yaml. Only its OpenAPI document is read.
require k8s.io/kubernetes v1.34.2
