# Everything here needs Go, make and a C compiler, and fetches the rest at pinned
# versions through the module proxy.

GO ?= go

# The modules that are released, and those that prove something about them. go.work
# joins them, so that one command can name packages of several.
MODULES = . cmd ctrlcache jetstream metrics postgres relay sqlite
PROOFS = bench deploy e2e
# Released, and outside of go.work: what they require would raise versions for all others.
APART = etcd
# Modules with long tests come first: otherwise one package would run alone at the end.
LONG = sqlite cmd
PACKAGES = $(LONG:%=./%/...) ./... $(patsubst %,./%/...,$(filter-out . $(LONG),$(MODULES)))
ALL_PACKAGES = $(PACKAGES) $(PROOFS:%=./%/...)

# staticcheck comes from a module of its own, so that the version is pinned and
# the library's go.mod does not carry its dependencies.
bin/staticcheck: tools/go.mod
	cd tools && GOWORK=off $(GO) build -o ../$@ honnef.co/go/tools/cmd/staticcheck

# Runs go test, and prints progress, failures in full, and what was skipped.
bin/testrun: tools/go.mod $(wildcard tools/testrun/*.go)
	cd tools && GOWORK=off $(GO) build -o ../$@ ./testrun

# The race detector needs a C compiler. It leaves out SQLite itself, which is C
# translated to Go: watched, everything that uses a disk takes three to five times
# as long.
RACE ?= $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race -gcflags=github.com/ncruces/go-sqlite3-wasm/...=-race=false)

# A script that runs client-go's own tests against package cache. It is kept
# outside of this repository, because those tests are not ours.
CONFORMANCE ?= ../shared/conformance/run.sh
ALLOW_NOT_COVERED ?= 30

# How many days to simulate, from which seed on.
SEEDS ?= 20000
FIRST ?= 1

# How long each fuzzer runs.
FUZZTIME ?= 1m

# How often a process that writes to disk is killed.
CRASHES ?= 250

# Flags for the benchmarks, such as BENCH='-run relist -count 3'. Without any, all that
# the documents show is measured, and written into them.
BENCH ?=

# Flags for the end-to-end tests, such as E2E='-v -run Scenarios/restored'.
E2E ?=

# The real programs that the end-to-end tests run, each version in a folder of its
# own. They are kept in the user's cache, so that a fresh clone finds what another one
# has built: that takes some 12 minutes on two cores.
E2E_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tarn/e2e
KUBERNETES = $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' e2e/build/go.mod)
ETCD = $(shell awk '$$1 == "go.etcd.io/etcd/server/v3" && NF > 1 { print $$2 }' e2e/build/etcd/go.mod)
KUBERNETES_BIN = $(E2E_CACHE)/kubernetes-$(KUBERNETES)
ETCD_BIN = $(E2E_CACHE)/etcd-$(ETCD)
E2E_PROGRAMS = $(addprefix $(KUBERNETES_BIN)/,kube-apiserver kube-controller-manager kubectl) $(ETCD_BIN)/etcd $(ETCD_BIN)/etcdutl

comma := ,

# A recipe fails if any program of a pipe does.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help run test proofs lint matrix peers image release sim simdisk fuzz crash engines questions e2e e2e-scenarios e2e-others bench bench-history bench-engines bench-relay bench-shards bench-fleet bench-server conformance

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Flags for the demonstration, such as DEMO='--faults --pods 5000'.
DEMO ?=

run: ## start a lively cluster in the process, mirror it, and show it in the terminal and on a page
	@$(GO) build -o bin/tarn ./cmd/tarn
	@bin/tarn demo $(DEMO)

# Every test in its small form (-short). make lint vets, so that go test need not.
test: bin/testrun ## test everything in a small form, with the race detector, and say at the end what was not tested
	GO=$(GO) bin/testrun $(if $(RACE),-note "writes to shared objects$(comma) which the race detector reports; larger numbers: make proofs",-note "data races: there is no C compiler for the race detector") \
		-- -short -vet=off -timeout=20m $(RACE) $(PACKAGES) ./deploy/... \
		-- -C bench -short -vet=off -timeout=20m ./...
	@for module in $(APART); do echo "$(GO) test $$module"; (cd $$module && GOWORK=off $(GO) test -short -vet=off $(RACE) ./...) || exit 1; done
	cd tools && GOWORK=off $(GO) test -vet=off ./...

# Packages with tests of two sizes, or tests that the race detector leaves out. The others
# would only repeat make test. In reverse order, because those of sqlite take longest and would
# come late.
TWO_SIZES = testsize\.|testing\.Short\(|rapid\.Check|[rR]aceEnabled|wiretest\.Some|go:build !race
PROOF_PACKAGES = $(shell grep -rlE '$(TWO_SIZES)' --include='*_test.go' . | grep -vE '^\./(bench|deploy|e2e|etcd|tools)/' | xargs -n1 dirname | sort -ru)

proofs: bin/testrun ## run the same tests in their full form, without the race detector
	GO=$(GO) bin/testrun -- -vet=off -timeout=30m $(PROOF_PACKAGES)

questions: ## ask the questions of docs/sql.md of 10,000 pods, and print how long each takes
	$(GO) test -run 'TestQuestions$$' -v -count 1 ./sqlite/ondisk -question.pods 10000
	$(GO) test -run TestQuickFunctions -count 1 ./sqlite

lint: bin/staticcheck ## check the formatting, vet, and run staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES) $(PROOFS); do (cd $$module && $(GO) mod tidy -diff) || exit 1; done
	$(GO) vet $(ALL_PACKAGES)
	bin/staticcheck $(ALL_PACKAGES)
	@for module in $(APART); do echo "$(GO) vet, staticcheck $$module"; \
		(cd $$module && export GOWORK=off && $(GO) mod tidy -diff && $(GO) vet ./... && ../bin/staticcheck ./...) || exit 1; done
	cd tools && GOWORK=off $(GO) vet ./...

# Which minor version of client-go make matrix tests: MATRIX=0.36; all if empty.
MATRIX ?=

matrix: ## build and test with older client-go and controller-runtime; MATRIX=0.36 chooses
	cd tools && GOWORK=off $(GO) build -o ../bin/matrix ./matrix
	bin/matrix -only "$(MATRIX)"

# Flags for make peers, such as PEERS='-only prometheus -keep' or PEERS=-ci.
PEERS ?=

peers: e2e-build ## run other projects' tests on our caches and on client-go's, and compare; PEERS='-only prometheus' chooses
	cd tools && GOWORK=off $(GO) build -o ../bin/peers ./peers
	TEST_ASSET_KUBE_APISERVER=$(KUBERNETES_BIN)/kube-apiserver TEST_ASSET_KUBECTL=$(KUBERNETES_BIN)/kubectl \
		TEST_ASSET_ETCD=$(ETCD_BIN)/etcd bin/peers $(PEERS)

image: ## build the program as deploy/Dockerfile does, and see that it is static
	$(GO) test ./deploy -run TestDockerfile -image -count 1 -timeout 30m

release: ## make a release of all modules in a scratch directory, and prove that it can be used
	tools/release.sh v0.0.0-test.$$(date +%s) # its own: go keeps an index of each version

sim: ## simulate SEEDS bad days (20,000 unless given), each for a replica, an informer, and a process with sinks
	$(GO) test ./internal/sim -run 'TestDays|TestSinkDays' -seeds $(SEEDS) -sinkseeds $(SEEDS) -first $(FIRST) -timeout 24h -v | grep -v '^=== '

simdisk: ## simulate SEEDS bad days (1,000 unless given) of replicas on disks that fail
	$(GO) test ./sqlite -run TestDays -days $(if $(filter file,$(origin SEEDS)),1000,$(SEEDS)) -first $(FIRST) -timeout 24h -v | grep -v '^=== \|--- PASS: TestDays/'

fuzz: ## run every fuzzer, each for FUZZTIME (1m unless given)
	@grep -rno --include='*_test.go' '^func Fuzz[A-Za-z]*' . | sed 's|/[^/]*:[0-9]*:func | |' | while read folder name; do \
		echo "$$folder $$name"; \
		$(GO) test $$folder -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x || exit 1; done

crash: ## kill a process that writes to disk CRASHES times (250 unless given), and look at what it leaves
	$(GO) test ./sqlite -count=1 -timeout 2h -run TestKill -crashes $(CRASHES)

# How often the feeders of engines, and their servers, are killed, and by which dice.
KILLS ?= 40
SEED ?= 1

engines: ## kill feeders and their engines KILLS times (40 unless given), and compare with a model of the source; restart with 100,000 objects
	$(GO) test ./postgres -count=1 -timeout 1h -run 'TestKills|TestManyUnchanged' -kills $(KILLS) -seed $(SEED) -objects 100000 -v | grep -v '^=== '
	$(GO) test ./jetstream -count=1 -timeout 1h -run 'TestKills|TestRestartWritesNothing' -kills $(KILLS) -seed $(SEED) -objects 100000 -v | grep -v '^=== '

bench: ## compare with client-go and write the figures into the documents (half an hour); BENCH='-run relist' only prints
	cd bench && $(GO) run . $(or $(BENCH),-docs ..)

# Flags for make bench-history, such as HISTORY='-states 100000 -bound 0'. The directories
# of 8.6 million states need 6 GB, and an hour.
HISTORY ?= -docs ../docs/benchmarks.md

bench-history: ## measure what a history on disk costs, and write it into docs/benchmarks.md; HISTORY='-states 100000' only prints
	cd bench && $(GO) run ./history $(HISTORY)

# Flags for make bench-engines, such as ENGINES='-pods 2000 -rounds 1'.
ENGINES ?= -docs ../docs/benchmarks.md

bench-engines: ## measure how fast engines are fed, beside a bare writer of the same bytes, and how far behind they are, and write it into docs/benchmarks.md; ENGINES=-bounds fails below 0.5 (Postgres) and 0.7 (JetStream), or beyond a lag of 1 s
	cd bench && $(GO) run ./engines $(ENGINES)

# Flags for make bench-shards, such as SHARDS='-pods 2000 -n 8'.
SHARDS ?=

bench-shards: ## measure one of four shards beside a copy of everything, and print it
	cd bench && $(GO) run ./shards $(SHARDS)

# Flags for make bench-fleet, such as FLEET='-pods 20000 -dir DIR -plans'.
FLEET ?=

bench-fleet: ## ask the questions of docs/sql.md of 100,000 pods in ten clusters, and print how long each takes
	cd bench && $(GO) run ./fleet $(FLEET)

conformance: ## run client-go's own tests against package cache, where the script is at hand
	@if [ -x "$(CONFORMANCE)" ]; then \
		ALLOW_NOT_COVERED=$(ALLOW_NOT_COVERED) "$(CONFORMANCE)"; \
	else \
		echo "conformance: NOT RUN: there is no script at $(CONFORMANCE); name one with make conformance CONFORMANCE=<path>"; \
	fi

# e2e runs tests of the module e2e with the programs that they need.
e2e = cd e2e && TARN_E2E_BIN=$(KUBERNETES_BIN):$(ETCD_BIN) $(GO) test -count=1 -timeout 60m

# How many pods the benchmark on the real server has, and how many rounds.
BENCH_PODS ?= 3000
BENCH_ROUNDS ?= 3

bench-server: e2e-build ## compare with client-go on the real kube-apiserver; BENCH_PODS and BENCH_ROUNDS choose
	$(e2e) -v -run TestBenchmark . -bench.pods $(BENCH_PODS) -bench.rounds $(BENCH_ROUNDS)

# Flags for make bench-relay, such as RELAY='-pods 1000', which only prints.
RELAY ?= -docs ../docs/benchmarks.md

bench-relay: e2e-build ## measure a relay beside the real kube-apiserver, and write it into docs/benchmarks.md; RELAY='-pods 1000' only prints
	$(e2e) -v -run TestRelayBenchmark . -bench.relay '$(RELAY)'

# with-kubectl runs the tests of other packages that need a kubectl.
define with-kubectl
KUBECTL=$(KUBERNETES_BIN)/kubectl $(GO) test -count=1 -run TestKubectl ./apiserver
KUBECTL=$(KUBERNETES_BIN)/kubectl $(GO) test -count=1 -run TestDocs ./cmd/internal/cli
endef

e2e: e2e-build ## run against the real kube-apiserver, built on the first run; E2E='-v -run Sync' chooses
	$(e2e) $(E2E) ./...
	$(with-kubectl)

# The tests spend most of their time waiting: make -j2 e2e-scenarios e2e-others runs all but
# the benchmarks in two thirds of it.
e2e-scenarios: e2e-build
	$(e2e) $(E2E) -run TestScenarios ./...

e2e-others: e2e-build
	$(e2e) $(E2E) -skip 'Benchmark|TestScenarios' ./...
	$(with-kubectl)

e2e-build: $(E2E_PROGRAMS)

# The programs ask the linker for the version that they report.
version_flags = $(foreach package,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(package).gitVersion=$(KUBERNETES) \
	-X $(package).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(package).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES:v%=%))))

$(KUBERNETES_BIN)/%:
	cd e2e/build && GOWORK=off CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w $(strip $(version_flags))" -o $@ k8s.io/kubernetes/cmd/$*

$(ETCD_BIN)/etcd:
	cd e2e/build/etcd && GOWORK=off CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $@ go.etcd.io/etcd/server/v3

$(ETCD_BIN)/etcdutl:
	cd e2e/build/etcd && GOWORK=off CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $@ go.etcd.io/etcd/etcdutl/v3
