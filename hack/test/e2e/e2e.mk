# Runs the tests on a real node. They need root, and Debian's containerd, runc,
# containernetworking-plugins, iptables, iproute2, conntrack, ethtool and debootstrap.

E2E_ARCHIVES := $(addprefix $(BIN)/e2e/,pause.tar coredns.tar skipper.tar postgres.tar cloudnative-pg.tar cloudnative-pg.yaml)
E2E_DATE     := 0
ARCHITECTURE := $(shell go env GOARCH)

##@ Real node

.PHONY: e2e
e2e: e2e-ready s3-tools e2e-release e2e-former ## Run the tests on a real node (needs root; FOCUS: regular expression of the specs to run).
	$(GO_TEST) -count=1 $(filter-out %/hack/test/e2e,$(call packages-of,e2e))
	@go test -c -o $(BIN)/e2e/e2e.test ./hack/test/e2e
	@cd hack/test/e2e && $(BIN)/e2e/e2e.test -test.timeout 20m -test.v -ginkgo.v -ginkgo.focus='$(FOCUS)'

.PHONY: node
node: e2e-ready ## Run a cluster of one real node, with Paddock's images, until Ctrl-C (needs root).
	@go build -o $(BIN)/node ./hack/dev/node
	@exec $(BIN)/node $(addprefix $(BIN)/e2e/,skipper.tar postgres.tar apiserver.tar controller.tar)

.PHONY: e2e-ready
e2e-ready: cluster-tools node-tools helm-tools e2e-images ## Build the tools, programs and images for e2e and node.

# The images of our programs are packed each time, the others only if their versions change.
.PHONY: e2e-images
e2e-images: build $(BIN)/images $(E2E_ARCHIVES)
	$(foreach program,$(PROGRAMS),$(call pack-program,$(program),$(BIN)/e2e/$(program).tar,e2e,-binary $(ARCHITECTURE)=$(BIN)/$(program)))

# The release that the test pushes to a registry on the node, from there to be installed. Its programs are those of
# `make build`. RELEASED=1 builds it by `make release` instead, which compiles everything again, reproducibly.
E2E_VERSION  := 0.2.0-e2e.1
E2E_REGISTRY := 127.0.0.1:5000/clinics
E2E_PLATFORM := linux-$(ARCHITECTURE)

.PHONY: e2e-release
ifdef RELEASED
e2e-release: release-tools
	@$(MAKE) --no-print-directory release VERSION=$(E2E_VERSION) RELEASE_REGISTRY=$(E2E_REGISTRY) RELEASE_DIR=$(BIN)/e2e/release \
		ARCHITECTURES=$(ARCHITECTURE) PLUGIN_PLATFORMS=$(E2E_PLATFORM) REGISTRY= RELEASE_KEY=
else
e2e-release: release-tools e2e-images
	@rm -rf $(BIN)/e2e/programs && mkdir -p $(BIN)/e2e/programs/$(E2E_PLATFORM)
	@ln -s $(addprefix $(BIN)/,$(PROGRAMS) kubectl-paddock) $(BIN)/e2e/programs/$(E2E_PLATFORM)/
	@$(RELEASE) assemble -version $(E2E_VERSION) -revision "$$(git rev-parse HEAD)" -created $(SOURCE_DATE_EPOCH) -registry $(E2E_REGISTRY) \
		-programs $(BIN)/e2e/programs -images $(BIN)/e2e -helm $(HELM) -out $(BIN)/e2e/release
endif

# The release before: the images of its programs, under the names that its chart has, and the source with the chart.
E2E_FORMER := $(BIN)/e2e/former

.PHONY: e2e-former
e2e-former: $(E2E_FORMER)/apiserver.tar

$(E2E_FORMER)/apiserver.tar: $(BIN)/images hack/tools/release/release.mk
	@rm -rf $(E2E_FORMER) && mkdir -p $(E2E_FORMER)/source
	@commit=$(FORMER_COMMIT); git cat-file -e $$commit^{commit} 2>/dev/null || git fetch --quiet --unshallow || \
		{ echo "WARNING: git has no commit $$commit, which is release $(FORMER_VERSION): the upgrade is tested from today's commit under that version"; commit=HEAD; }; \
	echo "building release $(FORMER_VERSION) from commit $$commit (about 1 min) ..."; \
	git archive $$commit | tar --extract --directory $(E2E_FORMER)/source
	@cd $(E2E_FORMER)/source && GOWORK=off go build -ldflags '-X main.version=v$(FORMER_VERSION)' -o $(E2E_FORMER)/ $(addprefix ./cmd/,$(PROGRAMS))
	@for program in $(filter-out apiserver,$(PROGRAMS)) apiserver; do \
		$(BIN)/images -out $(E2E_FORMER)/$$program.tar -name ghcr.io/paddock-health/$$program:$(FORMER_VERSION) -created $(E2E_DATE) \
			-binary $(ARCHITECTURE)=$(E2E_FORMER)/$$program || exit 1; \
	done

$(BIN)/e2e/pause.tar: $(BIN)/images hack/test/e2e/images/pause/main.go
	@mkdir -p $(@D)
	@go build -ldflags '-s -w' -o $(BIN)/e2e/pause ./hack/test/e2e/images/pause
	@$(BIN)/images -out $@ -name paddock.local/pause:e2e -created $(E2E_DATE) -binary $(ARCHITECTURE)=$(BIN)/e2e/pause

$(BIN)/e2e/coredns.tar: $(BIN)/images $(COREDNS)
	@mkdir -p $(@D)
	@$(BIN)/images -out $@ -name paddock.local/coredns:e2e -created $(E2E_DATE) -binary $(ARCHITECTURE)=$(COREDNS)

$(BIN)/e2e/skipper.tar: $(BIN)/images $(SKIPPER)
	@mkdir -p $(@D)
	@$(BIN)/images -out $@ -name paddock.local/skipper:e2e -created $(E2E_DATE) -binary $(ARCHITECTURE)=$(SKIPPER)

# One program is both the operator and the manager that it runs in each Postgres container.
$(BIN)/e2e/cloudnative-pg.tar: $(BIN)/images $(CLOUDNATIVEPG)
	@rm -rf $(BIN)/e2e/cloudnative-pg.root && mkdir -p $(BIN)/e2e/cloudnative-pg.root/operator
	@cp $(CLOUDNATIVEPG) $(BIN)/e2e/cloudnative-pg.root/operator/manager_$(ARCHITECTURE)
	@ln -s operator/manager_$(ARCHITECTURE) $(BIN)/e2e/cloudnative-pg.root/manager
	@tar --create --file $(BIN)/e2e/cloudnative-pg.root.tar --directory $(BIN)/e2e/cloudnative-pg.root --sort=name --owner=0 --group=0 --mtime=@$(E2E_DATE) .
	@$(BIN)/images -out $@ -name ghcr.io/cloudnative-pg/cloudnative-pg:$(CLOUDNATIVEPG_VERSION:v%=%) -created $(E2E_DATE) \
		-root $(ARCHITECTURE)=$(BIN)/e2e/cloudnative-pg.root.tar -entrypoint /manager
	@rm -r $(BIN)/e2e/cloudnative-pg.root $(BIN)/e2e/cloudnative-pg.root.tar

# CloudNativePG's manifest, from its module. Its CPU limit of 100m is raised, because it is too low for a start on a busy
# machine.
$(BIN)/e2e/cloudnative-pg.yaml: hack/tools/cloudnative-pg/go.mod
	@mkdir -p $(@D)
	@sed -e 's/imagePullPolicy: Always/imagePullPolicy: Never/' -e '/limits:$$/,/cpu:/s/cpu: 100m/cpu: "2"/' \
		"$$(cd hack/tools/cloudnative-pg && GOWORK=off go list -m -f '{{.Dir}}' github.com/cloudnative-pg/cloudnative-pg)/releases/cnpg-$(CLOUDNATIVEPG_VERSION:v%=%).yaml" >$@.next
	@mv $@.next $@

$(BIN)/e2e/postgres.tar: $(BIN)/images $(wildcard hack/test/e2e/images/postgres/*)
	@mkdir -p $(@D)
	@echo "building an image of Debian's Postgres (about 1 min) ..."
	@hack/test/e2e/images/postgres/build.sh $(BIN)/e2e/postgres.root.tar
	@$(BIN)/images -out $@ -name paddock.local/postgres:15 -created $(E2E_DATE) -root $(ARCHITECTURE)=$(BIN)/e2e/postgres.root.tar -user 999:999 \
		-entrypoint docker-entrypoint.sh -command postgres -env PGDATA=/var/lib/postgresql/data -env LANG=C.UTF-8 \
		-env PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	@rm $(BIN)/e2e/postgres.root.tar
