# Generates files from Go types and markers. The root Makefile includes this file and sets BIN.

API_PACKAGES := api/v1alpha1 api/v1beta1 api/records/v1alpha1

# generate-into(root) writes below root the files that controller-gen generates.
define generate-into
	@$(foreach package,$(API_PACKAGES),\
	$(CONTROLLER_GEN) object:headerFile=hack/gen/boilerplate.go.txt paths=./$(package) output:object:dir=$(1)/$(package) &&) \
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=$(1)/config/crd/bases && \
	$(CONTROLLER_GEN) rbac:roleName=paddock-controller,fileName=controller_role.yaml \
		paths=./controllers/... paths=./cmd/controller output:rbac:artifacts:config=$(1)/config/rbac
endef

# Helm reads only files in the chart's folder, so the chart has copies of files that kustomize also installs.
CHART_FILES := charts/paddock/files

# copy-into(folder) copies them to a folder: CRDs, roles, admission policies, and audit policy.
define copy-into
	@for copy in crd/bases:crd rbac:rbac admission:admission audit:audit; do \
		from=config/$${copy%:*} to=$(1)/$${copy#*:}; rm -rf $$to && mkdir -p $$to || exit 1; \
		for file in $$from/*.yaml; do \
			case $$file in */kustomization.yaml | */\*.yaml) ;; *) cp $$file $$to/ || exit 1 ;; esac; \
		done; \
	done
endef

# References of docs/ that are generated from the code. Those of flags and metrics are written by tests, because flags are in
# packages that only their own tests can import. With the default depth of 10, the deepest settings of a SiteClass would have no
# fields.
CODE_REFERENCES := ./cmd/controller ./cmd/apiserver ./cmd/kubectl-paddock/commands ./hack/gen/metricdocs
generate-crd-reference = @$(CRD_REF_DOCS) --source-path=api/v1alpha1 --max-depth=20 --config=hack/gen/reference/crds.yaml --templates-dir=hack/gen/reference/templates \
	--renderer=markdown --output-path=$(1) --log-level=ERROR

##@ Development

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Generate deep-copy methods, CRDs, the controller's role, and the chart's copies of config and table of values.
	$(call generate-into,.)
	$(call copy-into,$(CHART_FILES))
	@cd hack/gen/chartvalues && go run . ../../../charts/paddock
	$(call generate-crd-reference,docs/reference/crds.md)
	@echo "writing docs/reference (builds the programs: about 2 min the first time) ..."
	@UPDATE_GOLDEN=1 go test -vet=off -run '^TestReference$$' $(CODE_REFERENCES)

.PHONY: verify-generated
verify-generated: GENERATED := $(BIN)/.generated
verify-generated: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Fail if a generated file is not up to date.
	@rm -rf $(GENERATED) && mkdir -p $(addprefix $(GENERATED)/,$(API_PACKAGES))
	$(call generate-into,$(GENERATED))
	@for path in $(addsuffix /zz_generated.deepcopy.go,$(API_PACKAGES)) config/crd/bases config/rbac/controller_role.yaml; do \
		diff -ru $$path $(GENERATED)/$$path || { echo "$$path is not up to date: run make generate" >&2; exit 1; }; \
	done
	$(call copy-into,$(GENERATED)/chart)
	@mkdir -p $(CHART_FILES)/admission && for folder in crd rbac admission audit; do \
		diff -ruN $(CHART_FILES)/$$folder $(GENERATED)/chart/$$folder || { echo "$(CHART_FILES)/$$folder is not up to date: run make generate" >&2; exit 1; }; \
	done
	$(call generate-crd-reference,$(GENERATED)/crds.md)
	@diff -u docs/reference/crds.md $(GENERATED)/crds.md || { echo "docs/reference/crds.md is not up to date: run make generate" >&2; exit 1; }
	@$(GO_TEST) -run '^TestReference$$' $(CODE_REFERENCES)
	@rm -rf $(GENERATED)
