# Runs the tests on a real node. They need root, and Debian's containerd, runc,
# containernetworking-plugins, iptables, iproute2, conntrack, ethtool and debootstrap.

E2E_ARCHIVES := $(addprefix $(BIN)/e2e/,pause.tar coredns.tar skipper.tar postgres.tar cloudnative-pg.tar cloudnative-pg.yaml)
E2E_DATE     := 0
ARCHITECTURE := $(shell go env GOARCH)

##@ Real node

.PHONY: e2e
e2e: e2e-ready ## Run the tests on a real node (needs root; FOCUS: regular expression of the specs to run).
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
