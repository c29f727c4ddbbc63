# Packs container images of Paddock's programs as OCI archives, without a container daemon.

IMAGE_REGISTRY ?= ghcr.io/paddock-health
IMAGE_TAG      ?= $(VERSION)
ARCHITECTURES  ?= amd64 arm64
PROGRAMS       := apiserver controller
# Files in images have the time of the commit, in seconds since 1970.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# Flags with which the same source makes the same program in any folder.
REPRODUCIBLE   := -trimpath -buildvcs=false
PROGRAMS_DIR   ?= $(BIN)
ARCHIVES_DIR   ?= $(BIN)/archives

title-apiserver         := Paddock API server
description-apiserver   := FHIR R4 and AHDS APIs of every site
title-controller        := Paddock controller
description-controller  := Reconciles Sites, WebhookEvents and Webhooks

##@ Images

.PHONY: images
images: $(BIN)/images ## Pack the programs as OCI images into bin/archives/*.tar (variables: ARCHITECTURES, IMAGE_REGISTRY, IMAGE_TAG).
	@mkdir -p $(ARCHIVES_DIR)
	@for arch in $(ARCHITECTURES); do \
		echo "building $(PROGRAMS) for linux/$$arch ..."; mkdir -p $(PROGRAMS_DIR)/linux-$$arch; \
		GOOS=linux GOARCH=$$arch go build $(REPRODUCIBLE) -ldflags '-s -w -X main.version=$(VERSION)' \
			-o $(PROGRAMS_DIR)/linux-$$arch/ $(addprefix ./cmd/,$(PROGRAMS)) || exit 1; \
	done
	$(foreach program,$(PROGRAMS),$(call pack-program,$(program),$(ARCHIVES_DIR)/$(program).tar,$(IMAGE_TAG),\
		$(foreach arch,$(ARCHITECTURES),-binary $(arch)=$(PROGRAMS_DIR)/linux-$(arch)/$(program))))

# pack-program(program, archive, tag, binaries) packs the binaries of a program, one for each architecture, as an image.
define pack-program
	@$(BIN)/images -out $(2) -name $(IMAGE_REGISTRY)/$(1):$(3) -created $(SOURCE_DATE_EPOCH) $(4) \
		-label 'title=$(title-$(1))' -label 'description=$(description-$(1))' -label licenses=Apache-2.0 \
		-label version=$(VERSION) -label revision=$(shell git rev-parse HEAD 2>/dev/null) \
		-label source=https://github.com/paddock-health/paddock

endef

$(BIN)/images: $(wildcard hack/tools/images/*.go) hack/tools/images/go.mod hack/tools/images/go.sum
	@mkdir -p $(BIN)
	@cd hack/tools/images && GOOS= GOARCH= GOWORK=off go build -mod=readonly -o $@ .
