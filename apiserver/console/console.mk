# Builds the web console. The root Makefile includes this file and sets BIN.

CONSOLE := apiserver/console

# build-console(folder) builds the console into a folder, relative to the app. The packages are installed
# from the lock file, so a build gives the same files everywhere.
define build-console
	@cd $(CONSOLE)/app && npm ci --ignore-scripts --silent && npx tsc --noEmit && npx vite build --logLevel warn --outDir $(1)
endef

.PHONY: console
console: ## Build the web console that the API server embeds.
	$(call build-console,../dist)

.PHONY: verify-console
verify-console: # Fail if the built console is not that of its source.
	$(call build-console,$(BIN)/.console)
	@diff -r $(CONSOLE)/dist $(BIN)/.console || { echo "$(CONSOLE)/dist is not up to date: run make console" >&2; exit 1; }
	@rm -rf $(BIN)/.console
