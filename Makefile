# Paddock. `make help` lists the targets; `make run` and `make test` need nothing
# but Go, make, git and npm.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# All programs, tools and tests are compiled alike, so that each package is compiled once for all of them:
# without cgo, with the paths as they are (images, which have to be reproducible, differ).
export CGO_ENABLED := 0

# `make lint` vets; once more before the tests, it would take all that they depend on, too.
GO_TEST := go test -vet=off

# Where `make run` listens and keeps its state.
PORT ?= 8080
KUBE_APISERVER_PORT ?= 0
ETCD_PORT ?= 0
DIR ?= .local
# Where its demo site keeps its records: cluster or postgres.
STORAGE ?= cluster

include hack/tools/tools.mk
include config/generate.mk
include charts/chart.mk
include hack/robustness/robustness.mk

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run

.PHONY: build
build: ## Build Paddock's programs into bin/.
	@mkdir -p $(BIN)
	@echo "building controller and apiserver (about 2 min the first time) ..."
	@go build -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/controller ./cmd/apiserver

.PHONY: run
run: cluster-tools build ## Run all of it with a demo site (STORAGE=postgres, PORT, KUBE_APISERVER_PORT, ETCD_PORT, DIR).
	@go build -o $(BIN)/run ./hack/run
	@exec $(BIN)/run --dir $(DIR) --bin $(BIN) --storage $(STORAGE) --port $(PORT) --kube-apiserver-port $(KUBE_APISERVER_PORT) --etcd-port $(ETCD_PORT)

##@ Check

.PHONY: lint
lint: $(GOLANGCI_LINT) verify-generated chart-lint ## Check style, generated files and formatting.
	@go mod tidy -diff
	$(GOLANGCI_LINT) run ./...

.PHONY: test
test: unit integration robustness ## Run every tier that needs no root.

# Packages whose tests start a control plane. They take turns, so that they do not
# take each other's time. All other packages are unit tests.
MODULE := github.com/paddock-health/paddock
INTEGRATION := $(addprefix $(MODULE)/,\
	hack/localcluster apiserver/store/cluster apiserver/access/kubernetes apiserver/fhir apiserver/ahds \
	apiserver/aggregated controllers/certificate controllers/pagetoken controllers/site controllers/webhook hack/localpaddock hack/randomsearch \
	hack/localpostgres apiserver/store/postgres hack/chart hack/kubectl)
# Robustness and the client libraries have targets of their own.
NOT_UNIT := $(INTEGRATION) $(MODULE)/hack/robustness $(MODULE)/hack/clients

.PHONY: unit
unit: ## Run the unit tests.
	@mkdir -p $(BIN)
	$(GO_TEST) $$(go list ./... | grep -vxF $(addprefix -e ,$(NOT_UNIT)))
	cd hack/images && go vet ./... && go test ./...

.PHONY: integration
integration: cluster-tools helm-tools build ## Run the tests against a real control plane.
	$(GO_TEST) -p 1 -timeout 20m $(INTEGRATION)

.PHONY: clients
clients: cluster-tools build ## Use the FHIR API with client libraries for Java, Python and Node.js, which have to be installed.
	$(GO_TEST) -count=1 -timeout 20m -v ./hack/clients

.PHONY: search-full
search-full: cluster-tools ## Ask 100,000 random queries, and prove that planted faults are found (about 45 min).
	$(GO_TEST) -count=1 -timeout 90m -v ./hack/randomsearch -queries 100000 -planted

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 30s).
	@for package in $$(go list ./apiserver/...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-30s} $$package || exit 1; \
		done; \
	done

.PHONY: bench
bench: cluster-tools build ## Measure against baselines in the same run (SETS, CLIENTS, ROUNDS, TURN, RECORDS).
	@go build -o $(BIN)/bench ./hack/bench
	@for set in $${SETS:-storage search postgres}; do \
		$(BIN)/bench --set $$set --bin $(BIN) --clients $${CLIENTS:-32} --rounds $${ROUNDS:-5} --turn $${TURN:-3s} --records $${RECORDS:-100000} || exit 1; \
	done

include hack/images/images.mk
include hack/e2e/e2e.mk
