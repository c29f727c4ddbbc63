# Breaks a real installation and checks what is left; the root Makefile includes this
# file and sets BIN.

##@ Robustness

ROBUSTNESS := $(GO_TEST) -count=1 -v ./hack/robustness -bin $(BIN)

.PHONY: build-failpoints
build-failpoints: # Build the API server that dies after a step of a write.
	@go build -tags failpoints -o $(BIN)/apiserver-failpoints ./cmd/apiserver

.PHONY: robustness
robustness: cluster-tools build build-failpoints ## Kill and pause processes under load for two minutes; check that nothing is lost.
	$(GO_TEST) ./hack/robustness/history
	$(ROBUSTNESS) -timeout 10m

.PHONY: robustness-full
robustness-full: cluster-tools build build-failpoints ## The same at length (about 10 min), and prove that planted bugs are caught.
	$(GO_TEST) ./hack/robustness/history
	$(ROBUSTNESS) -timeout 60m -kills 120 -control-plane-kills 12 -postgres-kills 20 -pauses 16 -long-pauses 4 -failpoint-deaths 10 -step-faults 10
	hack/robustness/planted.sh $(BIN)
