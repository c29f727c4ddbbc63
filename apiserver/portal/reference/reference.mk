# The API reference: files of a pinned npm package, which apiserver/portal embeds. The root Makefile
# includes this file and sets BIN.

REFERENCE := $(BIN)/reference
REFERENCE_ASSETS := swagger-ui-bundle.js swagger-ui-bundle.js.LICENSE.txt swagger-ui.css swagger-ui.LICENSE.txt icon.png

# The stamp is that of the packages which are installed.
$(REFERENCE)/node_modules/.package-lock.json: apiserver/portal/reference/package-lock.json apiserver/portal/reference/build.sh
	@apiserver/portal/reference/build.sh $(REFERENCE) && touch $@

.PHONY: reference
reference: $(REFERENCE)/node_modules/.package-lock.json ## Copy the API reference from its npm package.
	@cd $(REFERENCE)/assets && cp $(REFERENCE_ASSETS) $(CURDIR)/apiserver/portal/assets/

.PHONY: verify-reference
verify-reference: $(REFERENCE)/node_modules/.package-lock.json ## Fail if the API reference is not that of its npm package.
	@for name in $(REFERENCE_ASSETS); do \
		cmp $(REFERENCE)/assets/$$name apiserver/portal/assets/$$name || { echo "apiserver/portal/assets/$$name is not up to date: run make reference" >&2; exit 1; }; \
	done
