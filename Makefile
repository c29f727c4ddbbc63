# Paddock. `make help` lists the targets; `make run` and `make test` need only
# Go, make, git and npm.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Programs, tools and tests have the same compiler settings (no cgo, full paths), so that each package is
# compiled only once. Images have other settings, because they must be reproducible.
export CGO_ENABLED := 0

# GOGC of compilers and linkers: with the default of 100, large packages take a quarter more processor time. They
# take some more memory with this one. Programs and tests that make starts have the default.
BUILD_GOGC := 400

# Gomega polls every 10 ms by default. A poll that runs kubectl takes 0.1 s of processor time.
export GOMEGA_DEFAULT_EVENTUALLY_POLLING_INTERVAL := 100ms

# `make lint` runs vet, so `go test` does not repeat it.
GO_TEST := go test -vet=off

# Ports and state folder of `make run`. KUBE_APISERVER_PORT and ETCD_PORT of 0 select free ports, which later
# runs use again.
PORT ?= 8080
KUBE_APISERVER_PORT ?= 0
ETCD_PORT ?= 0
DIR ?= .local
# Storage of its demo site: cluster or postgres.
STORAGE ?= cluster
# What an empty demo site is filled with: clinic, hl7 (HL7's official examples) or none.
DATA ?= clinic

include hack/tools/tools.mk
include config/generate.mk
include apiserver/console/console.mk # under the heading of the file before it
include charts/chart.mk
include hack/test/robustness/robustness.mk

##@ General

.PHONY: help
help: ## Show this help.
	@test -t 1 && { bold=$$(printf '\033[1m') cyan=$$(printf '\033[36m') reset=$$(printf '\033[0m'); }; \
	awk -v bold="$$bold" -v cyan="$$cyan" -v reset="$$reset" 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s%s%s\n", bold, substr($$0, 5), reset} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  %s%-18s%s %s\n", cyan, $$1, reset, $$2}' $(MAKEFILE_LIST)

##@ Run

.PHONY: build
build: ## Build Paddock's programs into bin/.
	@mkdir -p $(BIN)
	@echo "building controller and apiserver (about 2 min the first time) ..."
	@$(call build-programs)

# Programs are linked without symbols for debuggers, which takes less time. Stack traces and profiles do not need them.
build-programs = GOGC=$(BUILD_GOGC) go build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/ ./cmd/controller ./cmd/apiserver ./cmd/listen ./cmd/kubectl-paddock $(1)

.PHONY: build-run
build-run: # Build Paddock's programs and the one behind `make run`, by one go build, so that a program is linked while others are compiled.
	@mkdir -p $(BIN)
	@echo "building Paddock's programs (about 2 min the first time) ..."
	@start=$$(date +%s); $(call build-programs,./hack/dev/run) && echo "built Paddock's programs in $$(( $$(date +%s) - start )) s"

# It comes before the tools and programs, which take minutes to build the first time.
check-run = @mkdir -p $(BIN) && go build -o $(BIN)/check-run ./hack/dev/run/check && \
	$(BIN)/check-run --dir $(1) --storage $(STORAGE) --data $(DATA) --port $(PORT)

.PHONY: check-run check-mock
check-run: # Check the variables of `make run`, its port, and that its folder is free.
	$(call check-run,$(DIR))
check-mock: # The same for `make mock`.
	$(call check-run,$(DIR)-mock)

.PHONY: run
run: check-run run-tools build-run ## Run Paddock with its own control plane and a demo site, until Ctrl-C (variables: STORAGE=cluster or postgres, DATA=clinic, hl7 or none, PORT, KUBE_APISERVER_PORT, ETCD_PORT, DIR; KUBEBUILDER_ASSETS: folder of setup-envtest).
	@exec $(BIN)/run --dir $(DIR) --bin $(BIN) --storage $(STORAGE) --data $(DATA) --port $(PORT) --kube-apiserver-port $(KUBE_APISERVER_PORT) --etcd-port $(ETCD_PORT)

.PHONY: mock
mock: check-mock run-tools build-run ## Serve the demo clinic to requests without a token, with new data each time, to try a client (variables: STORAGE, PORT).
	@rm -rf $(DIR)-mock
	@exec $(BIN)/run --dir $(DIR)-mock --bin $(BIN) --open --storage $(STORAGE) --port $(PORT)

##@ Check

.PHONY: lint
lint: $(GOLANGCI_LINT) verify-generated verify-console chart-lint workflow-lint ## Run golangci-lint, and check generated files, the built console, go.mod, the chart and the workflows.
	@go mod tidy -diff
	$(GOLANGCI_LINT) run ./...
	@$(GOLANGCI_LINT) fmt --diff # also of the modules in hack

.PHONY: workflow-lint
workflow-lint: $(ACTIONLINT) # Check the workflows of .github.
	@$(ACTIONLINT) -color=false

.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) ## Check the code that the programs call for known vulnerabilities (VULNDB: URL of another database).
	@hack/test/vulncheck.sh $(GOVULNCHECK)

.PHONY: test
test: unit integration robustness ## Run the unit, integration and robustness tests, which need no root.

# packages-of(target) lists the packages with a file suite_<target>_test.go. Their tests start server
# processes, such as a control plane or Postgres, and only this target runs them. The tests of all other
# packages are unit tests.
packages-of = $(shell go list -f '{{.ImportPath}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./... | sed -nE 's/ .*\<suite_$(1)_test\.go\>.*//p')

.PHONY: unit
unit: ## Run the tests of packages that start no server processes.
	@mkdir -p $(BIN)
	$(GO_TEST) $(filter-out $(call packages-of,[a-z0-9]+),$(shell go list ./...))
	cd hack/tools/images && go vet ./... && go test ./...
	cd hack/tools/release && go vet ./... && go test ./...
	cd hack/test/gitops && go vet ./... && go test ./...
	cd hack/tools/issuer && go vet ./...
	cd hack/tools/versitygw && go vet ./...
	cd hack/tools/kubernetes && go vet ./cluster-controllers

# Two packages are tested at the same time, because each waits for its servers about half of the time. More
# would take memory for a control plane each, and save nothing on two processors. Packages that take six
# minutes and more come first, so that none of them runs alone at the end.
longest-integration = $(addprefix %/,controllers/site hack/test/move hack/test/acceptance)
longest-first = $(filter $(longest-integration),$(1)) $(filter-out $(longest-integration),$(1))

.PHONY: integration
integration: cluster-tools $(ETCDUTL) helm-tools issuer release-tools s3-tools build-run ## Run the tests against a real etcd and kube-apiserver.
	$(GO_TEST) -p 2 -timeout 30m $(call longest-first,$(call packages-of,integration))

.PHONY: clients
clients: cluster-tools issuer build ## Test the FHIR API with client libraries for Java, Python and Node.js, and the console in Chromium; all must be installed.
	$(GO_TEST) -count=1 -timeout 20m -v $(call packages-of,clients)

.PHONY: search-full
search-full: cluster-tools ## Compare 100,000 random queries with the expected results, and check that planted bugs are found (about 45 min).
	$(GO_TEST) -count=1 -timeout 90m -v ./hack/test/randomsearch -queries 100000 -planted

.PHONY: move-full
move-full: cluster-tools build ## Move a Site with 100,000 records under load, and kill programs in each phase of moves (about 15 min).
	$(GO_TEST) -count=1 -timeout 60m -v ./hack/test/move -full

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 30s).
	@for package in $$(go list ./apiserver/...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-30s} $$package || exit 1; \
		done; \
	done

.PHONY: build-unaudited
build-unaudited: # Build the API server without the audit log, to measure its cost.
	@go build -tags unaudited -o $(BIN)/apiserver-unaudited ./cmd/apiserver

.PHONY: bench
bench: cluster-tools build build-unaudited issuer ## Compare performance with baselines measured in the same run (variables: SETS, CLIENTS, ROUNDS, TURN, RECORDS, SITES, DRAINED, RATE, LENGTH).
	@go build -o $(BIN)/bench ./hack/bench
	@for set in $${SETS:-storage search postgres}; do \
		$(BIN)/bench --set $$set --bin $(BIN) --clients $${CLIENTS:-32} --rounds $${ROUNDS:-5} --turn $${TURN:-3s} --records $${RECORDS:-100000} \
			--sites $${SITES:-1000} --drained $${DRAINED:-25} --rate $${RATE:-100} --length $${LENGTH:-30m} || exit 1; \
	done

include hack/tools/images/images.mk
include hack/tools/release/release.mk
include hack/gen/site/site.mk
include hack/test/e2e/e2e.mk
