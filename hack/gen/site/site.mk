# Builds the pages of docs/ as a site. The root Makefile includes this file and sets BIN.

##@ Documentation

.PHONY: docs
docs: $(BIN)/mkdocs/requirements.txt ## Build docs/ as a site into bin/site, and check its links (needs Python 3.11 with venv).
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs/bin/mkdocs build --strict >$(BIN)/mkdocs/log 2>&1 || { cat $(BIN)/mkdocs/log >&2; exit 1; }
	@! grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="https?://' $(BIN)/site --include='*.html' | grep . || { echo "these pages load something from other hosts" >&2; exit 1; }
	@echo "the site is in $(BIN)/site"

$(BIN)/mkdocs/requirements.txt: hack/gen/site/requirements.txt
	@python3 -m venv $(BIN)/mkdocs
	@$(BIN)/mkdocs/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@cp $< $@
