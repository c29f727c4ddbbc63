# Generates what follows from Go types and markers; the root Makefile includes this file and sets BIN.

API_PACKAGES := api/v1alpha1 api/records/v1alpha1

# generate-into(root) writes every generated file below root.
define generate-into
	@$(foreach package,$(API_PACKAGES),\
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./$(package) output:object:dir=$(1)/$(package) &&) \
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=$(1)/config/crd/bases && \
	$(CONTROLLER_GEN) rbac:roleName=paddock-controller,fileName=controller_role.yaml \
		paths=./controllers/... paths=./cmd/controller output:rbac:artifacts:config=$(1)/config/rbac
endef

##@ Development

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep-copy methods, CRDs and the controller's role.
	$(call generate-into,.)

.PHONY: verify-generated
verify-generated: GENERATED := $(BIN)/.generated
verify-generated: $(CONTROLLER_GEN) ## Fail if a generated file is not up to date.
	@rm -rf $(GENERATED) && mkdir -p $(addprefix $(GENERATED)/,$(API_PACKAGES))
	$(call generate-into,$(GENERATED))
	@for path in $(addsuffix /zz_generated.deepcopy.go,$(API_PACKAGES)) config/crd/bases config/rbac/controller_role.yaml; do \
		diff -ru $$path $(GENERATED)/$$path || { echo "$$path is not up to date: run make generate" >&2; exit 1; }; \
	done; rm -rf $(GENERATED)
