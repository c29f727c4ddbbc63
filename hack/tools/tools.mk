# Builds the pinned tools into $(BIN); the root Makefile includes this file and sets BIN.
# Versions are pinned only in hack/tools/<group>/go.mod. A tool is rebuilt when that file changes.
# Tools that use Kubernetes' libraries have them and their dependencies in the versions of
# hack/tools/kubernetes, so that these are compiled once for all tools and for Paddock.
# To use another control plane, set PADDOCK_BIN to a folder with its binaries, or KUBEBUILDER_ASSETS to one of setup-envtest.

ETCD           := $(BIN)/etcd
ETCDUTL        := $(BIN)/etcdutl
KUBECTL        := $(BIN)/kubectl
GOLANGCI_LINT  := $(BIN)/golangci-lint
CONTROLLER_GEN := $(BIN)/controller-gen
HELM           := $(BIN)/helm
HELM_UNITTEST  := $(BIN)/helm-unittest
KUBE_APISERVER := $(BIN)/kube-apiserver $(KUBECTL)
NODE_BINARIES  := $(BIN)/kubelet $(BIN)/kube-proxy $(BIN)/kube-scheduler
COREDNS        := $(BIN)/coredns
SKIPPER        := $(BIN)/skipper
GOVULNCHECK    := $(BIN)/govulncheck
PROMTOOL       := $(BIN)/promtool
ACTIONLINT     := $(BIN)/actionlint
CRD_REF_DOCS   := $(BIN)/crd-ref-docs
ISSUER         := $(BIN)/issuer
CLOUDNATIVEPG  := $(BIN)/cloudnative-pg
VERSITYGW      := $(BIN)/versitygw

# pinned-version(group, module) reads a version from a group's go.mod.
pinned-version = $(shell sed -nE 's|^(require)?[[:space:]]*$(2) (v[^ ]+).*|\2|p' hack/tools/$(1)/go.mod)

ETCD_VERSION           := $(call pinned-version,etcd,go.etcd.io/etcd/server/v3)
KUBE_VERSION           := $(call pinned-version,kubernetes,k8s.io/kubernetes)
GOLANGCI_LINT_VERSION  := $(call pinned-version,golangci-lint,github.com/golangci/golangci-lint/v2)
CONTROLLER_GEN_VERSION := $(call pinned-version,controller-gen,sigs.k8s.io/controller-tools)
OIDC_VERSION           := $(call pinned-version,issuer,github.com/zitadel/oidc/v3)
COREDNS_VERSION        := $(call pinned-version,coredns,github.com/coredns/coredns)
SKIPPER_VERSION        := $(call pinned-version,skipper,github.com/zalando/skipper)
CLOUDNATIVEPG_VERSION  := $(call pinned-version,cloudnative-pg,github.com/cloudnative-pg/cloudnative-pg)
PROMETHEUS_VERSION     := $(call pinned-version,prometheus,github.com/prometheus/prometheus)
CRD_REF_DOCS_VERSION   := $(call pinned-version,crd-ref-docs,github.com/elastic/crd-ref-docs)
VERSITYGW_VERSION      := $(call pinned-version,versitygw,github.com/versity/versitygw)
ACTIONLINT_VERSION     := $(call pinned-version,actionlint,github.com/rhysd/actionlint)
GOVULNCHECK_VERSION    := $(call pinned-version,govulncheck,golang.org/x/vuln)
HELM_VERSION           := $(call pinned-version,helm,helm.sh/helm/v4)

# Helm and kubectl parse these version fields. A build without them has the version v0.0.0-master.
kube-version-parts   := $(subst ., ,$(KUBE_VERSION:v%=%))
kube-version-ldflags := $(foreach pkg,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(pkg).gitVersion=$(KUBE_VERSION) \
	-X $(pkg).gitMajor=$(word 1,$(kube-version-parts)) \
	-X $(pkg).gitMinor=$(word 2,$(kube-version-parts)))

# build-tools(what, first-time duration, group, output, packages, ldflags, tags)
# Empty GOOS and GOARCH select this machine, even if the caller builds images for another one.
define build-tools
	@echo "building $(1) (about $(2) the first time) ..."
	@mkdir -p $(BIN)
	@start=$$(date +%s); cd hack/tools/$(3) && \
	GOOS= GOARCH= GOWORK=off GOGC=$(BUILD_GOGC) \
	go build -mod=readonly $(if $(7),-tags $(7)) -ldflags '-s -w $(6)' -o $(4) $(5) && \
	echo "built $(1) in $$(( $$(date +%s) - start )) s"
endef

##@ Tools

.PHONY: tools
tools: cluster-tools $(GOLANGCI_LINT) $(CONTROLLER_GEN) ## Build the control plane, golangci-lint and controller-gen into bin/.

.PHONY: cluster-tools
cluster-tools: run-tools $(BIN)/kube-controller-manager ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into bin/ (KUBEBUILDER_ASSETS: folder of setup-envtest to use instead).

# What `make run` needs: cluster-controllers instead of kube-controller-manager, most of whose packages it would have to
# compile for controllers of pods and volumes.
.PHONY: run-tools
run-tools: envtest-tools $(BIN)/cluster-controllers # Build the control plane of `make run`.

# The programs that setup-envtest has, too.
.PHONY: envtest-tools
ifdef KUBEBUILDER_ASSETS
envtest-tools: # Copy etcd, kube-apiserver and kubectl from a folder of setup-envtest.
	@hack/tools/envtest.sh '$(KUBEBUILDER_ASSETS)' $(BIN) $(KUBE_VERSION) $(ETCD_VERSION)
else
envtest-tools: $(ETCD) $(KUBE_APISERVER) # Build etcd, kube-apiserver and kubectl.
endif

.PHONY: issuer
issuer: $(ISSUER) # Build the OpenID Connect issuer of the tests.

.PHONY: node-tools
node-tools: $(NODE_BINARIES) $(COREDNS) $(SKIPPER) $(CLOUDNATIVEPG) ## Build kubelet, kube-proxy, kube-scheduler, CoreDNS, Skipper and CloudNativePG into bin/.

$(ETCD): hack/tools/etcd/go.mod hack/tools/etcd/go.sum
	$(call build-tools,etcd $(ETCD_VERSION),1 min,etcd,$@,go.etcd.io/etcd/server/v3)

$(ETCDUTL): hack/tools/etcd/go.mod hack/tools/etcd/go.sum
	$(call build-tools,etcdutl $(ETCD_VERSION),20 s,etcd,$@,go.etcd.io/etcd/etcdutl/v3)

# One go build compiles shared packages once and uses all cores.
$(KUBE_APISERVER) &: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	$(call build-tools,$(notdir $(KUBE_APISERVER)) $(KUBE_VERSION),3 min,kubernetes,$(BIN)/,$(addprefix k8s.io/kubernetes/cmd/,$(notdir $(KUBE_APISERVER))),$(kube-version-ldflags))

# setup-envtest has neither this nor kube-controller-manager.
$(BIN)/cluster-controllers: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum $(wildcard hack/tools/kubernetes/cluster-controllers/*.go)
	$(call build-tools,cluster-controllers,10 s,kubernetes,$@,./cluster-controllers,$(kube-version-ldflags))

$(BIN)/kube-controller-manager: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	$(call build-tools,$(@F) $(KUBE_VERSION),1 min,kubernetes,$@,k8s.io/kubernetes/cmd/$(@F),$(kube-version-ldflags))

$(NODE_BINARIES) &: hack/tools/kubernetes/go.mod hack/tools/kubernetes/go.sum
	$(call build-tools,$(notdir $(NODE_BINARIES)) $(KUBE_VERSION),3 min,kubernetes,$(BIN)/,$(addprefix k8s.io/kubernetes/cmd/,$(notdir $(NODE_BINARIES))),$(kube-version-ldflags))

$(COREDNS): hack/tools/coredns/go.mod hack/tools/coredns/go.sum hack/tools/coredns/main.go
	$(call build-tools,CoreDNS $(COREDNS_VERSION),2 min,coredns,$@,.)

$(ISSUER): hack/tools/issuer/go.mod hack/tools/issuer/go.sum $(wildcard hack/tools/issuer/*.go)
	$(call build-tools,issuer on zitadel/oidc $(OIDC_VERSION),15 s,issuer,$@,.)

.PHONY: s3-tools
s3-tools: $(VERSITYGW) # Build the S3 server of the tests.

$(VERSITYGW): hack/tools/versitygw/go.mod hack/tools/versitygw/go.sum hack/tools/versitygw/main.go
	$(call build-tools,Versity Gateway $(VERSITYGW_VERSION),1 min,versitygw,$@,.)

# The last version that does not depend on clients of databases, brokers and clouds, which are six times its own code.
$(SKIPPER): hack/tools/skipper/go.mod hack/tools/skipper/go.sum
	$(call build-tools,Skipper $(SKIPPER_VERSION),5 min,skipper,$@,github.com/zalando/skipper/cmd/skipper)

$(CLOUDNATIVEPG): hack/tools/cloudnative-pg/go.mod hack/tools/cloudnative-pg/go.sum
	$(call build-tools,CloudNativePG's operator $(CLOUDNATIVEPG_VERSION),5 min,cloudnative-pg,$@,github.com/cloudnative-pg/cloudnative-pg/cmd/manager)

$(GOLANGCI_LINT): hack/tools/golangci-lint/go.mod hack/tools/golangci-lint/go.sum
	$(call build-tools,golangci-lint $(GOLANGCI_LINT_VERSION),2 min,golangci-lint,$@,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

$(CONTROLLER_GEN): hack/tools/controller-gen/go.mod hack/tools/controller-gen/go.sum
	$(call build-tools,controller-gen $(CONTROLLER_GEN_VERSION),30 s,controller-gen,$@,sigs.k8s.io/controller-tools/cmd/controller-gen)

$(ACTIONLINT): hack/tools/actionlint/go.mod hack/tools/actionlint/go.sum
	$(call build-tools,actionlint $(ACTIONLINT_VERSION),15 s,actionlint,$@,github.com/rhysd/actionlint/cmd/actionlint)

$(CRD_REF_DOCS): hack/tools/crd-ref-docs/go.mod hack/tools/crd-ref-docs/go.sum
	$(call build-tools,crd-ref-docs $(CRD_REF_DOCS_VERSION),20 s,crd-ref-docs,$@,github.com/elastic/crd-ref-docs)

$(GOVULNCHECK): hack/tools/govulncheck/go.mod hack/tools/govulncheck/go.sum
	$(call build-tools,govulncheck $(GOVULNCHECK_VERSION),30 s,govulncheck,$@,golang.org/x/vuln/cmd/govulncheck)

.PHONY: helm-tools
helm-tools: $(HELM) $(HELM_UNITTEST) ## Build Helm and its unit test runner into bin/.

$(HELM) $(HELM_UNITTEST) &: hack/tools/helm/go.mod hack/tools/helm/go.sum
	$(call build-tools,helm and helm-unittest $(HELM_VERSION),4 min,helm,$(BIN)/,helm.sh/helm/v4/cmd/helm github.com/helm-unittest/helm-unittest/cmd/helm-unittest,-X helm.sh/helm/v4/internal/version.version=$(HELM_VERSION))

# The tag omits service discovery, and so the libraries of clouds: promtool only reads rules here.
# Therefore, its go.mod is not tidy: `go mod tidy` ignores tags.
$(PROMTOOL): hack/tools/prometheus/go.mod hack/tools/prometheus/go.sum
	$(call build-tools,promtool $(PROMETHEUS_VERSION),3 min,prometheus,$@,github.com/prometheus/prometheus/cmd/promtool,,remove_all_sd)
