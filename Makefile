# Everything here needs Go, make and a C compiler, and fetches the rest at pinned
# versions through the module proxy.

GO ?= go

# staticcheck comes from a module of its own, so that the version is pinned and
# the library's go.mod does not carry its dependencies.
STATICCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck

# The race detector needs a C compiler.
RACE ?= $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# A script that runs client-go's own tests against package cache. It is kept
# outside of this repository, because those tests are not ours.
CONFORMANCE ?= ../shared/conformance/run.sh
ALLOW_NOT_COVERED ?= 30

# Flags for the benchmarks, such as BENCH='-run relist -count 3'.
BENCH ?=

.DEFAULT_GOAL := help
.PHONY: help run test lint bench conformance

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## watch a small live collection change
	$(GO) run ./cmd/tarn

test: ## test everything, with the race detector
	@[ -n "$(RACE)" ] || echo "there is no C compiler: testing WITHOUT the race detector"
	$(GO) test $(RACE) ./...
	cd bench && $(GO) vet ./... && $(GO) test ./...

lint: ## check the formatting, vet, and run staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	cd bench && $(GO) vet ./... && $(STATICCHECK) ./...

bench: ## compare with client-go and print a table; BENCH='-run relist' chooses
	cd bench && $(GO) run . $(BENCH)

conformance: ## run client-go's own tests against package cache, where the script is at hand
	@if [ -x "$(CONFORMANCE)" ]; then \
		ALLOW_NOT_COVERED=$(ALLOW_NOT_COVERED) "$(CONFORMANCE)"; \
	else \
		echo "conformance: NOT RUN: there is no script at $(CONFORMANCE); name one with make conformance CONFORMANCE=<path>"; \
	fi
