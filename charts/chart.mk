# Checks the chart without a cluster, and renders from it what kustomize installs; the root Makefile
# includes this file and sets BIN.

CHART := charts/paddock
# helm-template(values file, more) renders the chart as a cluster of the supported version would get it.
helm-template = $(HELM) template paddock $(CHART) --namespace paddock-system --kube-version $(KUBE_VERSION) --values $(CHART)/ci/$(1).yaml $(2)

##@ Chart

.PHONY: chart-lint
chart-lint: $(HELM) $(HELM_UNITTEST) ## Lint the chart, render it with each file of ci/, compare with its snapshots, its README and its schema.
	@for values in $(CHART)/ci/*.yaml; do \
		$(HELM) lint --strict --quiet --kube-version $(KUBE_VERSION) --values $$values $(CHART) && \
		$(HELM) template paddock $(CHART) --namespace clinics --kube-version $(KUBE_VERSION) --values $$values >/dev/null || exit 1; \
	done
	@if $(HELM) template paddock $(CHART) --kube-version v1.33.0 >/dev/null 2>&1; then echo "the chart installs on Kubernetes 1.33" >&2; exit 1; fi
	@$(HELM_UNITTEST) $(CHART)
	@cd hack/chartvalues && go vet ./... && go test ./...

.PHONY: chart-snapshots
chart-snapshots: $(HELM_UNITTEST) ## Take what the chart renders now as right.
	@$(HELM_UNITTEST) --update-snapshot $(CHART)
