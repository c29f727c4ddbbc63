# Checks the chart without a cluster, and renders from it the programs that kustomize installs. The root
# Makefile includes this file and sets BIN.

CHART := charts/paddock

##@ Chart

.PHONY: chart-lint
chart-lint: $(HELM_UNITTEST) alerts-lint dashboard-lint verify-rendered ## Lint the chart, render it with each file of ci/, and compare it with its snapshots, README and schema.
	@for values in $(CHART)/ci/*.yaml; do \
		$(HELM) lint --strict --quiet --kube-version $(KUBE_VERSION) --values $$values $(CHART) && \
		$(HELM) template paddock $(CHART) --namespace clinics --kube-version $(KUBE_VERSION) --values $$values >/dev/null || exit 1; \
	done
	@if $(HELM) template paddock $(CHART) --kube-version v1.33.0 >/dev/null 2>&1; then echo "the chart installs on Kubernetes 1.33" >&2; exit 1; fi
	@$(HELM_UNITTEST) $(CHART)
	@cd hack/gen/chartvalues && go vet ./... && go test ./...

.PHONY: alerts-lint
alerts-lint: $(PROMTOOL) # Check the syntax of the alerts, and run their unit tests.
	@$(PROMTOOL) check rules --lint=all --lint-fatal $(CHART)/files/monitoring/alerts.yaml
	@$(PROMTOOL) test rules $(CHART)/tests/monitoring/alerts.yaml

# tsc finds invalid fields of the dashboard only in TypeScript, so the JSON is wrapped in a TypeScript file.
.PHONY: dashboard-lint
dashboard-lint: # Check the dashboard against Grafana's TypeScript types.
	@mkdir -p $(BIN)/dashboardcheck && cp hack/test/dashboardcheck/* hack/test/dashboardcheck/.npmrc $(BIN)/dashboardcheck/
	@cd $(BIN)/dashboardcheck && npm ci --silent --ignore-scripts --no-audit --no-fund
	@{ printf "import type { Dashboard } from '@grafana/schema';\nexport const dashboard: Dashboard = "; cat $(CHART)/files/monitoring/dashboard.json; } >$(BIN)/dashboardcheck/dashboard.ts
	@cd $(BIN)/dashboardcheck && node_modules/.bin/tsc --project .

.PHONY: chart-snapshots
chart-snapshots: $(HELM_UNITTEST) ## Replace the chart's snapshots by what it renders now.
	@$(HELM_UNITTEST) --update-snapshot $(CHART)

# The programs that `kubectl apply -k` installs are rendered from the chart, without Helm's labels. The CRDs,
# roles and policies are in config/ already.
KUSTOMIZE_VALUES := --values $(CHART)/ci/minimal.yaml --set publicURL=https://fhir.example.org
render-programs = $(HELM) template paddock $(CHART) --namespace paddock-system --kube-version $(KUBE_VERSION) $(KUSTOMIZE_VALUES) \
	$(addprefix --show-only templates/,$(addsuffix .yaml,$(1))) | \
	sed -E '/^ *(helm.sh\/chart|app.kubernetes.io\/managed-by|app.kubernetes.io\/instance):/d; s/ +$$//' >$(2)

# render-into(folder) writes every rendered file below folder.
define render-into
	@mkdir -p $(1)/default $(1)/aggregation
	@$(call render-programs,controller facade delivery disruption networkpolicies priority,$(1)/default/programs.yaml)
	@$(call render-programs,webhook,$(1)/default/webhook.yaml)
	@$(call render-programs,aggregated,$(1)/aggregation/programs.yaml)
endef

.PHONY: chart-render
chart-render: $(HELM) ## Render config/default and config/aggregation from the chart.
	$(call render-into,config)

.PHONY: verify-rendered
verify-rendered: $(HELM) # Fail if a file that chart-render writes is not up to date.
	$(call render-into,$(BIN)/.rendered)
	@for file in default/programs.yaml default/webhook.yaml aggregation/programs.yaml; do \
		diff -u config/$$file $(BIN)/.rendered/$$file || { echo "config/$$file is not up to date: run make chart-render" >&2; exit 1; }; \
	done; rm -rf $(BIN)/.rendered
