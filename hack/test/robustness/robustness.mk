# Kills and pauses the processes of a real installation and checks that no write is lost or doubled. The
# root Makefile includes this file and sets BIN.

##@ Robustness

ROBUSTNESS = $(GO_TEST) -count=1 -v $(call packages-of,robustness) -bin $(BIN)

.PHONY: build-failpoints
build-failpoints: # Build an API server that can kill itself after a given step of a write.
	@go build -tags failpoints -o $(BIN)/apiserver-failpoints ./cmd/apiserver

.PHONY: robustness
robustness: cluster-tools build build-failpoints ## Kill and pause processes under load for some minutes, without the specs labelled long, and check that no write is lost or doubled.
	$(ROBUSTNESS) -timeout 20m -ginkgo.label-filter='!long'

.PHONY: robustness-full
robustness-full: cluster-tools build build-failpoints ## Run the robustness tests for about 20 min, and check for about as long that they find planted bugs.
	$(ROBUSTNESS) -timeout 60m -kills 120 -control-plane-kills 12 -postgres-kills 20 -pauses 16 -long-pauses 4 -failpoint-deaths 10 -step-faults 10
	hack/test/robustness/planted.sh $(BIN)

# Seeds and storages of fault runs.
SEEDS ?= 1-200
ENGINES ?= cluster postgres

.PHONY: fault-runs
fault-runs: cluster-tools build ## Run the seeded fault runs that have not passed yet with the present code, and add them to the ledger (variables: SEEDS=1-200, ENGINES=cluster postgres).
	hack/test/robustness/faultruns.sh $(BIN) $(SEEDS) $(ENGINES)
