# Builds a release and pushes it to an OCI registry. The root Makefile includes this file and sets BIN.

# Versions of the chart and of tags have no leading v, those of programs have one.
RELEASE_VERSION      := $(VERSION:v%=%)
RELEASE_DIR          ?= $(BIN)/releases/$(RELEASE_VERSION)
# Where `make release` builds programs: a folder of its own, so that its programs are not mixed with others.
RELEASE_BUILD        := $(BIN)/releases/.build-$(RELEASE_VERSION)
PLUGIN_PLATFORMS     ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64 windows-arm64
# The registry that the chart names. It is REGISTRY, if that is set.
RELEASE_REGISTRY     := $(or $(REGISTRY),$(IMAGE_REGISTRY))
RELEASE              := $(BIN)/release
REGISTRY_SERVER      := $(BIN)/registry
DISTRIBUTION_VERSION := $(call pinned-version,registry,github.com/distribution/distribution/v3)

##@ Release

.PHONY: release
release: $(RELEASE) $(BIN)/images $(HELM) ## Build a release into bin/releases (VERSION=0.2.0), and push it (REGISTRY=ghcr.io/paddock-health, RELEASE_KEY: file with the private key).
	@[ '$(origin VERSION)' != file ] || { echo "VERSION is not set. Name the version of the release: make release VERSION=0.2.0" >&2; exit 1; }
	@case '$(RELEASE_VERSION)' in [0-9]*.[0-9]*.[0-9]*) ;; *) echo "VERSION is $(VERSION), want a semantic version such as 0.2.0" >&2; exit 1 ;; esac
	@case '$(RELEASE_VERSION)' in *-*) ;; *) [ -z "$$(git status --porcelain)" ] || { \
		echo "The working tree differs from the commit. Commit the changes, or use a version such as 0.2.0-rc.1." >&2; exit 1; } ;; esac
	@rm -rf $(RELEASE_BUILD)
	@$(MAKE) --no-print-directory images VERSION=v$(RELEASE_VERSION) IMAGE_TAG=$(RELEASE_VERSION) IMAGE_REGISTRY=$(RELEASE_REGISTRY) \
		PROGRAMS_DIR=$(RELEASE_BUILD) ARCHIVES_DIR=$(RELEASE_BUILD)/archives
	@for platform in $(PLUGIN_PLATFORMS); do \
		echo "building kubectl-paddock for $$platform ..."; mkdir -p $(RELEASE_BUILD)/$$platform; \
		GOOS=$${platform%-*} GOARCH=$${platform#*-} go build $(REPRODUCIBLE) -ldflags '-s -w -X main.version=v$(RELEASE_VERSION)' \
			-o $(RELEASE_BUILD)/$$platform/ ./cmd/kubectl-paddock || exit 1; \
	done
	@$(RELEASE) assemble -version $(RELEASE_VERSION) -revision "$$(git rev-parse HEAD)" -created $(SOURCE_DATE_EPOCH) -registry $(RELEASE_REGISTRY) \
		-programs $(RELEASE_BUILD) -images $(RELEASE_BUILD)/archives -helm $(HELM) -out $(RELEASE_DIR)
	@rm -rf $(RELEASE_BUILD)
	$(if $(REGISTRY),@$(RELEASE) push -registry $(REGISTRY) -dir $(RELEASE_DIR) $(if $(RELEASE_KEY),-key $(RELEASE_KEY)))

# The release from which tests upgrade, and its commit. docs/versions.md says why it is this one.
FORMER_VERSION  := 0.1.0
FORMER_COMMIT   ?= 4c84991a9537aa4181ae93749780380969ebf24a
RELEASE_TEST    := $(BIN)/releases/test
RELEASE_TEST_V  := 0.0.1-test.1

.PHONY: release-test
release-test: release-tools cluster-tools build ## Build the commit as a release, twice, push it to a registry here, and install, upgrade, roll back and run what was pushed (FORMER_COMMIT: commit or tag of the release before).
	@rm -rf $(RELEASE_TEST) && git worktree prune && git worktree add --quiet --detach $(RELEASE_TEST)/elsewhere HEAD
	@mkdir -p $(RELEASE_TEST)/elsewhere/bin && cp $(RELEASE) $(BIN)/images $(HELM) $(HELM_UNITTEST) $(RELEASE_TEST)/elsewhere/bin/
	@for folder in . $(RELEASE_TEST)/elsewhere; do \
		$(MAKE) --no-print-directory -C $$folder release VERSION=$(RELEASE_TEST_V) RELEASE_DIR=$(RELEASE_TEST)/$$(basename $$(cd $$folder && pwd)).release REGISTRY= RELEASE_KEY= || exit 1; \
	done
	@mv $(RELEASE_TEST)/elsewhere.release $(RELEASE_TEST)/second && mv $(RELEASE_TEST)/*.release $(RELEASE_TEST)/first
	@mkdir $(RELEASE_TEST)/former && git archive $(FORMER_COMMIT) charts/paddock | tar --extract --directory $(RELEASE_TEST)/former
	@$(HELM) package $(RELEASE_TEST)/former/charts/paddock --destination $(RELEASE_TEST) >/dev/null
	@git worktree remove --force $(RELEASE_TEST)/elsewhere
	$(GO_TEST) -count=1 -timeout 20m -v $(call packages-of,release)

.PHONY: release-tools
release-tools: $(RELEASE) $(REGISTRY_SERVER) $(BIN)/images $(HELM) # Build what the tests of releases need.

$(RELEASE): $(wildcard hack/tools/release/*.go) hack/tools/release/go.mod hack/tools/release/go.sum
	$(call build-tools,release on sigstore-go,1 min,release,$@,.)

$(REGISTRY_SERVER): hack/tools/registry/main.go hack/tools/registry/go.mod hack/tools/registry/go.sum
	$(call build-tools,the registry $(DISTRIBUTION_VERSION),1 min,registry,$@,.)
